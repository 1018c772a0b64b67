// What is in a picture and what of it is visible: nodes and groups, the boxes that stand for them, the lines among them.
// No DOM: the tests run this file and layout.js by themselves.
'use strict';
const LOOK = {
  input: 0,
  weight: 1,
  state: 2,
  numbers: 3,
  elementwise: 4,
  reduce: 5,
  copy: 6,
  composite: 7,
  kernel: 8,
  output: 9,
};
const SIZE = {
  title: 15,
  line: 14,
  padX: 12,
  padY: 8,
  minWidth: 84,
  maxText: 250,
  chip: 19,
  chipGap: 4,
  chipText: 180,
  chipSpace: 14,
  mostChips: 6,
  gapX: 26,
  gapLine: 14,
  track: 9,
  channel: 30,
  header: 30,
  groupPad: 16,
  port: 12,
};

// ---- the model: a picture as it comes, with what can be looked up in it --------------------------------

function makeModel(data, texts) {
  const n = data.look.length,
    groups = data.groups.parent.map((parent, k) => ({
      parent,
      name: texts[data.groups.name[k]],
      calls: texts[data.groups.calls[k]],
      where: texts[data.groups.where[k]],
      groups: [],
      nodes: [],
      count: 0,
      weights: 0,
      depth: 0,
    }));
  const model = {n, groups, nodes: [], roots: {groups: [], nodes: []}, into: [], from: []};
  groups.forEach((g, k) => {
    g.depth = g.parent < 0 ? 0 : groups[g.parent].depth + 1;
    (g.parent < 0 ? model.roots : groups[g.parent]).groups.push(k);
  });
  for (let i = 0; i < n; ++i) {
    const node = {
      i,
      id: data.id[i],
      look: data.look[i],
      label: texts[data.label[i]],
      shape: texts[data.shape[i]],
      about: texts[data.about[i]],
      group: data.group[i],
      beside: data.beside[i] === 1,
      weights: [],
      writes: [],
    };
    model.nodes.push(node);
    model.into.push([]);
    model.from.push([]);
    if (node.beside) continue;
    (node.group < 0 ? model.roots : groups[node.group]).nodes.push(i);
    for (let k = node.group; k >= 0; k = groups[k].parent) ++groups[k].count;
  }
  model.edges = [];
  for (let e = 0; e < data.edges.length; e += 3) {
    const edge = {from: data.edges[e], to: data.edges[e + 1], view: texts[data.edges[e + 2]]};
    model.edges.push(edge);
    model.into[edge.to].push(edge);
    model.from[edge.from].push(edge);
    if (model.nodes[edge.from].beside && !model.nodes[edge.to].beside) {
      const to = model.nodes[edge.to];
      if (to.weights.includes(edge.from)) continue;
      to.weights.push(edge.from);
      if (model.nodes[edge.from].look === LOOK.numbers) continue;
      for (let k = to.group; k >= 0; k = groups[k].parent) ++groups[k].weights;
    }
  }
  for (let w = 0; w < data.writes.length; w += 2) model.nodes[data.writes[w]].writes.push(data.writes[w + 1]);
  return model;
}

// The weight behind what was made of it at load.
function originOf(model, i) {
  while (model.nodes[i].look === LOOK.weight && model.into[i].length) i = model.into[i][0].from;
  return i;
}

// Which groups are open at first: from the outside in, as long as the picture stays one that can be looked at.
function openAtFirst(model, most) {
  const open = new Set();
  let shown = model.roots.groups.length + model.roots.nodes.length;
  let level = model.roots.groups;
  while (level.length) {
    const next = [];
    for (const k of level) {
      const more = model.groups[k].groups.length + model.groups[k].nodes.length - 1;
      if (shown + more > most || (model.groups[k].where && model.n > 2 * most)) continue; // a call says enough closed
      shown += more;
      open.add(k);
      next.push(...model.groups[k].groups);
    }
    level = next;
  }
  return open;
}

// ---- text ----------------------------------------------------------------------------------------------

// The longest beginning (or end) of a text that fits, with an ellipsis where something is missing.
function fit(text, width, font, measure, keepEnd = false) {
  if (measure(text, font) <= width) return text;
  let lo = 0,
    hi = text.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    const part = keepEnd ? '…' + text.slice(text.length - mid) : text.slice(0, mid) + '…';
    if (measure(part, font) <= width) lo = mid;
    else hi = mid - 1;
  }
  if (!keepEnd) return text.slice(0, lo).trimEnd() + '…';
  const dot = text.indexOf('.', text.length - lo); // names are cut between their parts
  return '…' + (dot > 0 && dot < text.length - lo / 2 ? text.slice(dot + 1) : text.slice(text.length - lo));
}

// At most two lines, broken behind a comma or a blank where there is one.
function wrap(text, width, font, measure) {
  if (measure(text, font) <= width) return [text];
  let cut = 0;
  for (let k = 1; k < text.length; ++k) {
    if (text[k] !== ' ' && text[k - 1] !== '.' && text[k - 1] !== '_') continue;
    if (measure(text.slice(0, k), font) > width) break;
    cut = k;
  }
  if (cut < text.length / 4) return [fit(text, width, font, measure)];
  return [text.slice(0, cut), fit(text.slice(cut).trimStart(), width, font, measure)];
}

// ---- boxes ---------------------------------------------------------------------------------------------

// A weight's name without what the groups around its reader say: "q_proj.weight" within model, layers, layers.0.
function nameWithin(model, label, group) {
  const around = [];
  for (let k = group; k >= 0; k = model.groups[k].parent) around.unshift(model.groups[k].name);
  for (const name of around)
    for (const part of [name, name.slice(name.lastIndexOf('.') + 1)])
      if (label.startsWith(part + '.')) {
        label = label.slice(part.length + 1);
        break;
      }
  return label;
}

function chip(model, i, reader, measure) {
  const origin = model.nodes[originOf(model, i)];
  const label = fit(nameWithin(model, origin.label, reader.group), SIZE.chipText, 'chip', measure, true);
  return {node: i, label, w: measure(label, 'chip') + 14, h: SIZE.chip, look: origin.look};
}

function chips(model, list, reader, measure) {
  const made = list.slice(0, SIZE.mostChips).map(i => chip(model, i, reader, measure));
  if (list.length > SIZE.mostChips) {
    const label = `and ${list.length - SIZE.mostChips} more`;
    made.push({node: -1, label, w: measure(label, 'chip') + 14, h: SIZE.chip, look: LOOK.weight});
  }
  return made;
}

function nodeBox(model, i, measure) {
  const n = model.nodes[i];
  const lines = wrap(n.label, SIZE.maxText, 'title', measure);
  const sub = fit(n.shape, SIZE.maxText, 'sub', measure);
  const text = Math.max(...lines.map(l => measure(l, 'title')), measure(sub, 'sub'));
  const box = {
    kind: 'node',
    node: i,
    lines,
    sub,
    left: chips(model, n.weights, n, measure),
    right: chips(model, n.writes, n, measure),
  };
  box.w = Math.max(SIZE.minWidth, Math.ceil(text) + 2 * SIZE.padX);
  box.h = 2 * SIZE.padY + SIZE.title * lines.length + SIZE.line;
  return withChips(box);
}

function groupBox(model, k, measure) {
  const g = model.groups[k];
  const lines = wrap(g.name, SIZE.maxText, 'title', measure);
  const held =
    `${g.count} ${g.count === 1 ? 'node' : 'nodes'}` +
    (g.weights ? `, ${g.weights} ${g.weights === 1 ? 'weight' : 'weights'}` : '');
  const sub = fit(g.calls === g.name || !g.calls ? held : g.calls, SIZE.maxText, 'sub', measure);
  const text = Math.max(...lines.map(l => measure(l, 'title') + 22), measure(sub, 'sub'));
  const box = {kind: 'group', group: k, lines, sub, left: [], right: [], held};
  box.w = Math.max(SIZE.minWidth, Math.ceil(text) + 2 * SIZE.padX);
  box.h = 2 * SIZE.padY + SIZE.title * lines.length + SIZE.line;
  return withChips(box);
}

// A box with what stands beside it takes `before` to the left of its middle, `behind` to the right, `height` in all.
function withChips(box) {
  const wide = list => (list.length ? Math.max(...list.map(c => c.w)) + SIZE.chipSpace : 0);
  const high = list => list.length * (SIZE.chip + SIZE.chipGap) - (list.length ? SIZE.chipGap : 0);
  box.before = box.w / 2 + wide(box.left);
  box.behind = box.w / 2 + wide(box.right);
  box.height = Math.max(box.h, high(box.left), high(box.right));
  return box;
}

// ---- lines between what is visible ---------------------------------------------------------------------

// For every open group (-1: the picture) its items, and the nets among them: a value and all its readers.
function makeScopes(model, open) {
  const scopes = new Map();
  const scopeOf = k => {
    if (!scopes.has(k)) scopes.set(k, {items: [], nets: new Map()});
    return scopes.get(k);
  };
  const at = {node: new Map(), group: new Map()}; // item -> scope
  const visit = (k, content) => {
    const scope = scopeOf(k);
    for (const i of content.nodes) scope.items.push('n' + i);
    for (const g of content.groups) {
      scope.items.push('g' + g);
      if (open.has(g)) visit(g, model.groups[g]);
    }
  };
  visit(-1, model.roots);
  // the chain of scopes around what stands for a node, outermost first, each with the item that holds it
  const chains = new Array(model.n);
  const chainOf = i => {
    if (chains[i]) return chains[i];
    const around = [];
    for (let k = model.nodes[i].group; k >= 0; k = model.groups[k].parent) around.push(k);
    around.reverse();
    const chain = [];
    let scope = -1;
    for (const k of around) {
      chain.push([scope, 'g' + k]);
      if (!open.has(k)) return (chains[i] = chain);
      scope = k;
    }
    chain.push([scope, 'n' + i]);
    return (chains[i] = chain);
  };
  const join = (scope, key, src, dst, edge) => {
    const nets = scopes.get(scope).nets;
    if (!nets.has(key)) nets.set(key, {key, src, dsts: new Map(), edges: []});
    const net = nets.get(key);
    net.dsts.set(dst, (net.dsts.get(dst) || 0) + 1);
    net.edges.push(edge);
  };
  for (const edge of model.edges) {
    if (model.nodes[edge.from].beside || model.nodes[edge.to].beside) continue;
    const a = chainOf(edge.from),
      b = chainOf(edge.to);
    const key = a[a.length - 1][1];
    if (key === b[b.length - 1][1]) continue;
    let k = 0;
    while (a[k][1] === b[k][1]) ++k;
    join(a[k][0], key, a[k][1], b[k][1], edge);
    for (let d = k + 1; d < a.length; ++d) join(a[d][0], key, a[d][1], 'out', edge);
    for (let d = k + 1; d < b.length; ++d) join(b[d][0], key, 'in', b[d][1], edge);
  }
  return scopes;
}

// The box of an open group around what is in it: a header whose title no line crosses, and ports at both edges.
function openBox(model, k, inner, measure) {
  const g = model.groups[k],
    pad = SIZE.groupPad;
  const title = fit(g.name, 260, 'title', measure);
  const need = measure(title, 'title') + 34;
  const ins = [...inner.ports.in.values()].sort((a, b) => a - b);
  let dx = pad,
    titleX = 0;
  let w = Math.max(inner.w + 2 * pad, need + 8);
  dx = (w - inner.w) / 2;
  if (ins.length) {
    const first = ins[0] + dx,
      last = ins[ins.length - 1] + dx;
    if (first < need + 6) {
      if (w - last > need + 12) {
        titleX = w - need - 6;
      } else {
        const more = need + 6 - first;
        w += more;
        dx += more;
      }
    }
  }
  const hasIn = inner.ports.in.size > 0,
    hasOut = inner.ports.out.size > 0;
  const dy = SIZE.header + (hasIn ? 0 : 2),
    h = dy + inner.h + (hasOut ? 0 : pad);
  const box = {
    kind: 'open',
    group: k,
    lines: [title],
    sub: '',
    left: [],
    right: [],
    w,
    h,
    inner,
    dx,
    dy,
    titleX,
    titleW: need,
    hasIn,
    hasOut,
  };
  const moved = map => new Map([...map].map(([key, x]) => [key, x + dx]));
  box.ports = {in: moved(inner.ports.in), out: moved(inner.ports.out)};
  return withChips(box);
}
