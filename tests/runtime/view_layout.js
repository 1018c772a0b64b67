// Holds the layout of pages that graph_html() wrote to what a reader may expect: run as `node view_layout.js page.html ...`.
// No line through a box, none upon another one, no label wider than its box, boxes apart and within their groups, and a
// line for each edge; for groups as they are at first, all closed, all open, and opened at random.
'use strict';
const fs = require('fs');
let failures = 0;
const fail = text => {
  if (++failures <= 20) console.error(text);
};

function open(page) {
  const scripts = [...page.matchAll(/<script>\n([\s\S]*?)<\/script>/g)].map(m => m[1]);
  const module = {exports: {}};
  new Function('module', scripts[0])(module);
  const json = [...page.matchAll(/<script type="application\/json"[^>]*>([\s\S]*?)<\/script>/g)].map(m =>
    JSON.parse(m[1]),
  );
  const texts = json.pop();
  return {api: module.exports, pictures: json, texts: texts.texts, titles: texts.titles};
}

// Widths of letters as Arial has them, more or less: what counts is that the layout keeps to the widths that it is told.
const measure = (text, font) => {
  let w = 0;
  for (const c of text)
    w += "iljtfr.,:;|!' ()[]".includes(c) ? 0.33 : 'mwMW%@'.includes(c) ? 0.9 : c >= 'A' && c <= 'Z' ? 0.7 : 0.56;
  return w * {title: 13, sub: 11, chip: 10.5}[font];
};

// Boxes by cells, so that ten thousand of them are looked at in time.
class Cells {
  constructor(boxes) {
    this.cells = new Map();
    for (const b of boxes)
      this.each(b.x, b.y, b.x + b.w, b.y + b.h, key => {
        if (!this.cells.has(key)) this.cells.set(key, []);
        this.cells.get(key).push(b);
      });
  }
  each(x0, y0, x1, y1, f) {
    for (let i = Math.floor(x0 / 400); i <= Math.floor(x1 / 400); ++i)
      for (let j = Math.floor(y0 / 200); j <= Math.floor(y1 / 200); ++j) f(i + ',' + j);
  }
  near(x0, y0, x1, y1) {
    const found = new Set();
    this.each(x0, y0, x1, y1, key => (this.cells.get(key) || []).forEach(b => found.add(b)));
    return found;
  }
}

const overlap = (a, x0, y0, x1, y1, slack) =>
  x0 < a.x + a.w - slack && x1 > a.x + slack && y0 < a.y + a.h - slack && y1 > a.y + slack;

function check(name, api, model, groups) {
  const scene = api.layout(model, groups, measure),
    say = text => fail(`${name}: ${text}`);
  const solid = scene.boxes.filter(b => b.kind !== 'open'),
    frames = scene.boxes.filter(b => b.kind === 'open');
  const cells = new Cells([...solid, ...scene.chips]);
  // labels
  for (const b of scene.boxes) {
    for (const l of b.lines)
      if (measure(l, 'title') > b.w - (b.kind === 'open' ? 24 : 2 * api.SIZE.padX - 1))
        say(`the label '${l}' is wider than its box`);
    if (b.kind === 'group' && measure(b.lines[0], 'title') > b.w - 2 * api.SIZE.padX - 16)
      say(`'${b.lines[0]}' runs into its sign`);
    if (measure(b.sub, 'sub') > b.w - 2 * api.SIZE.padX + 1) say(`'${b.sub}' is wider than its box`);
    if (b.lines.length * api.SIZE.title + (b.sub ? api.SIZE.line : 0) > b.h)
      say(`'${b.lines}' is higher than its box`);
    if (b.x < -0.5 || b.y < -0.5 || b.x + b.w > scene.w + 0.5 || b.y + b.h > scene.h + 0.5)
      say(`${b.item} is outside of the picture`);
  }
  for (const c of scene.chips)
    if (measure(c.label, 'chip') > c.w - 13) say(`the label '${c.label}' is wider than its chip`);
  // boxes and chips apart, within their groups
  for (const b of [...solid, ...scene.chips])
    for (const o of cells.near(b.x, b.y, b.x + b.w, b.y + b.h))
      if (o !== b && overlap(o, b.x, b.y, b.x + b.w, b.y + b.h, 0.5))
        say(`${b.item || b.label} lies upon ${o.item || o.label}`);
  const groupOf = item => (item[0] === 'g' ? model.groups[+item.slice(1)].parent : model.nodes[+item.slice(1)].group);
  const inside = (item, k) => {
    for (let g = groupOf(item); g >= 0; g = model.groups[g].parent) if (g === k) return true;
    return false;
  };
  const frameCells = new Cells(frames);
  for (const b of scene.boxes)
    for (const f of frameCells.near(b.x, b.y, b.x + b.w, b.y + b.h)) {
      if (f === b || (b.kind === 'open' && inside(f.item, b.group))) continue;
      const within = b.x >= f.x && b.y >= f.y + 20 && b.x + b.w <= f.x + f.w && b.y + b.h <= f.y + f.h;
      if (inside(b.item, f.group) ? !within : overlap(f, b.x, b.y, b.x + b.w, b.y + b.h, 0.5))
        say(`${b.item} and the group ${f.item} lie wrong`);
    }
  // lines
  const upright = new Map(),
    level = new Map();
  const put = (map, key, from, to, net) => {
    key = Math.round(key * 2) / 2;
    if (!map.has(key)) map.set(key, []);
    map.get(key).push([Math.min(from, to), Math.max(from, to), net]);
  };
  for (const l of scene.lines) {
    const p = l.points;
    for (let k = 0; k + 3 < p.length; k += 2) {
      const [x0, x1] = [Math.min(p[k], p[k + 2]), Math.max(p[k], p[k + 2])],
        [y0, y1] = [Math.min(p[k + 1], p[k + 3]), Math.max(p[k + 1], p[k + 3])];
      if (x1 - x0 > 0.5 && y1 - y0 > 0.5) say(`a line of ${l.net} is neither upright nor level`);
      if (p[k + 3] < p[k + 1] - 0.5) say(`a line of ${l.net} goes up`);
      for (const b of cells.near(x0, y0, x1, y1))
        if (overlap(b, x0 - 0.1, y0 - 0.1, x1 + 0.1, y1 + 0.1, 1))
          say(`a line of ${l.net} crosses ${b.item || b.label}`);
      for (const f of frameCells.near(x0, y0, x1, y1)) {
        if (x0 < f.x + f.titleX + f.titleW && x1 > f.x + f.titleX && y0 < f.y + 26 && y1 > f.y + 6)
          say(`a line of ${l.net} crosses the title of ${f.item}`);
        const ends = l.net === f.item || inside(l.net, f.group) || l.within.includes(f.group);
        if (!ends && overlap(f, x0 - 0.1, y0 - 0.1, x1 + 0.1, y1 + 0.1, 1))
          say(`a line of ${l.net} crosses the group ${f.item}`);
      }
      if (x1 - x0 <= 0.5) put(upright, p[k], y0, y1, l.net);
      else put(level, p[k + 1], x0, x1, l.net);
    }
  }
  let upon = 0;
  for (const map of [upright, level])
    for (const list of map.values()) {
      list.sort((a, b) => a[0] - b[0]);
      let reach = -Infinity,
        net = null;
      for (const [from, to, of] of list) {
        if (of !== net && from < reach - 1) ++upon;
        if (to > reach) ((reach = to), (net = of));
      }
    }
  if (upon > scene.lines.length / 200) say(`${upon} of ${scene.lines.length} lines lie upon each other`);
  // every edge
  const shown = i => {
    let item = 'n' + i;
    for (let k = model.nodes[i].group; k >= 0; k = model.groups[k].parent) if (!groups.has(k)) item = 'g' + k;
    return item;
  };
  const drawn = new Set(scene.lines.filter(l => l.arrow).map(l => l.net + '>' + l.dst));
  const chips = new Set(scene.chips.map(c => c.owner + '<' + c.node));
  for (const e of model.edges) {
    const a = model.nodes[e.from],
      b = model.nodes[e.to],
      to = shown(e.to);
    if (b.beside) continue;
    if (a.beside) {
      if (to === 'n' + e.to && b.weights.indexOf(e.from) < api.SIZE.mostChips && !chips.has(to + '<' + e.from))
        say(`no weight %${a.id} beside %${b.id}`);
    } else if (shown(e.from) !== to && !drawn.has(shown(e.from) + '>' + to)) {
      say(`no line from %${a.id} to %${b.id}`);
    }
  }
  for (const n of model.nodes) if (!n.beside && !scene.byItem.has(shown(n.i))) say(`%${n.id} is not there`);
  return scene;
}

let seed = 7;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const most = +(process.env.MOST_MS || 1e9);
for (const file of process.argv.slice(2)) {
  const {api, pictures, texts, titles} = open(fs.readFileSync(file, 'utf8'));
  pictures.forEach((data, k) => {
    const name = `${file.replace(/.*\//, '')} '${titles[k]}'`,
      model = api.makeModel(data, texts);
    const all = [...model.groups.keys()];
    const begin = process.cpuUsage().user;
    api.layout(model, api.openAtFirst(model, 32), measure);
    const ms = (process.cpuUsage().user - begin) / 1000;
    if (ms > most) fail(`${name}: the first layout took ${ms.toFixed(0)} ms`);
    const first = check(name, api, model, api.openAtFirst(model, 32));
    check(name + ', closed', api, model, new Set());
    const t = process.cpuUsage().user,
      whole = api.layout(model, new Set(all), measure);
    const opened = (process.cpuUsage().user - t) / 1000;
    if (model.n < 3000) check(name + ', open', api, model, new Set(all));
    const share = model.n < 3000 ? 0.6 : 0.25;
    for (let n = 0; n < (model.n < 1000 ? 3 : 1); ++n)
      check(`${name}, opened at random (${n})`, api, model, new Set(all.filter(() => random() < share)));
    console.log(
      `${name}: ${model.n} nodes in ${all.length} groups, ${first.boxes.length} boxes at first in ${ms.toFixed(0)} ms, ${whole.boxes.length} in all in ${opened.toFixed(0)} ms`,
    );
  });
}
if (failures) console.error(`${failures} failures`);
process.exit(failures ? 1 : 0);
