// The page: tabs, groups that open and close, search, zoom, what a node is.
'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const canvas = $('canvas'),
    context = canvas.getContext('2d'),
    measure = canvasMeasure(context);
  const {titles, texts} = JSON.parse($('texts').textContent);
  const sources = [...document.querySelectorAll('script.picture')];
  const pictures = sources.map(() => null);
  const size = {w: 0, h: 0, ratio: 1},
    view = {x: 0, y: 0, scale: 1};
  const marks = {lines: new Set(), selected: '', hover: '', into: '', found: new Set()};
  const MOST = 32,
    FIRST_SCALE = 0.72,
    MOST_FOUND = 60;
  let now = 0,
    dark = matchMedia('(prefers-color-scheme: dark)').matches,
    waiting = false,
    chosen = 0;

  const picture = () => {
    if (!pictures[now]) {
      const model = makeModel(JSON.parse(sources[now].textContent), texts);
      pictures[now] = {model, open: openAtFirst(model, MOST), scene: null, view: null};
    }
    const p = pictures[now];
    if (!p.scene) p.scene = layout(p.model, p.open, measure);
    return p;
  };
  const paintNow = () => {
    waiting = false;
    const p = picture();
    draw(context, size, p.model, p.scene, view, dark ? 'dark' : 'light', marks);
  };
  const redraw = () => {
    if (!titles.length) return;
    if (!waiting) requestAnimationFrame(paintNow);
    waiting = true;
  };

  // ---- moving about ----
  const limit = scale => Math.min(4, Math.max(0.002, scale));
  function whole(least) {
    const {scene} = picture(),
      margin = 28;
    const fitting = Math.min((size.w - 2 * margin) / scene.w, (size.h - 2 * margin) / scene.h, 1.1);
    view.scale = limit(Math.max(fitting, least));
    const w = size.w / view.scale,
      h = size.h / view.scale;
    view.x = (scene.w - w) / 2;
    view.y = scene.h < h ? (scene.h - h) / 2 : fitting < least ? -margin / view.scale : (scene.h - h) / 2;
    if (scene.w > w && fitting < least) {
      // where the picture begins, not where its middle is empty
      const top = scene.boxes.reduce((a, b) => (b.y < a.y ? b : a));
      view.x = top.x + top.w / 2 - w / 2;
      view.x = Math.min(Math.max(view.x, -margin / view.scale), scene.w - w + margin / view.scale);
    }
    redraw();
  }
  function zoom(factor, px = size.w / 2, py = size.h / 2) {
    const scale = limit(view.scale * factor),
      x = view.x + px / view.scale,
      y = view.y + py / view.scale;
    view.scale = scale;
    view.x = x - px / scale;
    view.y = y - py / scale;
    redraw();
  }
  function centre(box) {
    const from = {...view},
      scale = Math.max(view.scale, 0.8);
    const to = {x: box.x + box.w / 2 - size.w / scale / 2, y: box.y + box.h / 2 - size.h / scale / 2, scale};
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return (Object.assign(view, to), redraw());
    const begin = performance.now();
    const step = time => {
      const k = Math.min(1, Math.max(0, (time - begin) / 260)),
        e = 1 - (1 - k) ** 3;
      for (const key of ['x', 'y', 'scale']) view[key] = from[key] + (to[key] - from[key]) * e;
      redraw();
      if (k < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  // ---- what is where ----
  function under(px, py) {
    const x = view.x + px / view.scale,
      y = view.y + py / view.scale,
      {scene} = picture();
    const within = b => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h;
    if (view.scale > 0.2)
      for (const c of scene.chips) if (c.node >= 0 && within(c)) return {chip: c, item: 'w' + c.node};
    for (let k = scene.boxes.length; k-- > 0;)
      if (within(scene.boxes[k]))
        return {box: scene.boxes[k], item: scene.boxes[k].item, header: y < scene.boxes[k].y + SIZE.header};
    return null;
  }
  const nodeOf = at => at && (at.chip ? at.chip.node : at.box.kind === 'node' ? at.box.node : -1);

  function mark(at) {
    marks.lines = new Set(at && at.box && at.box.kind !== 'open' ? [at.item] : []);
    marks.into = at && at.box && at.box.kind !== 'open' ? at.item : '';
  }

  // ---- groups ----
  function toggle(k, box) {
    const p = picture(),
      px = (box.x - view.x) * view.scale,
      py = (box.y - view.y) * view.scale,
      wide = box.w;
    if (p.open.has(k)) p.open.delete(k);
    else {
      p.open.add(k);
      // a group that holds but one is no answer
      for (let g = p.model.groups[k]; g.groups.length === 1 && !g.nodes.length; g = p.model.groups[g.groups[0]])
        p.open.add(g.groups[0]);
    }
    p.scene = null;
    const after = picture().scene.byItem.get('g' + k);
    view.x = after.x + (after.w - wide) / 2 - px / view.scale;
    view.y = after.y - py / view.scale;
    if (p.open.has(k) && after.w * view.scale > size.w * 0.95)
      view.x = after.x + after.w / 2 - size.w / view.scale / 2;
    redraw();
  }
  function all(open) {
    const p = picture();
    p.open = new Set(open ? p.model.groups.keys() : []);
    p.scene = null;
    const {w, h} = picture().scene;
    whole(Math.min(size.w / w, size.h / h) < 0.15 ? FIRST_SCALE : 0);
  }
  function reveal(item) {
    const p = picture(),
      {model} = p;
    const index = +item.slice(1);
    let shown = item,
      around = item[0] === 'g' ? model.groups[index].parent : 0;
    if (item[0] !== 'g') {
      let i = index;
      while (model.nodes[i].beside) {
        // beside its first reader
        const next = model.from[i].find(e => !model.nodes[e.to].beside) || model.from[i][0];
        if (!next) break;
        i = next.to;
      }
      around = model.nodes[i].group;
      shown = 'n' + i;
    }
    for (let k = around; k >= 0; k = model.groups[k].parent) if (!p.open.has(k)) (p.open.add(k), (p.scene = null));
    const box = picture().scene.byItem.get(shown);
    if (box) centre(box);
    return box;
  }

  // ---- search ----
  let results = [];
  function search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean),
      {model} = picture();
    results = [];
    marks.found = new Set();
    if (words.length) {
      model.groups.forEach((g, k) => {
        const s = `${g.name} ${g.calls} ${g.where}`.toLowerCase();
        if (words.every(w => s.includes(w)))
          results.push({
            item: 'g' + k,
            name: g.name,
            more: `${pathOf(model, g.parent)}${g.count} nodes${g.where ? ', ' + g.where : ''}`,
          });
      });
      model.nodes.forEach(n => {
        const s = `${n.label} ${n.shape} ${n.about} %${n.id}`.toLowerCase();
        if (words.every(w => s.includes(w)))
          results.push({
            item: (n.beside ? 'w' : 'n') + n.i,
            name: nameOf(model, n.i),
            more: pathOf(model, n.group) + n.shape,
          });
      });
      const first = r =>
        r.name.toLowerCase().startsWith(words[0]) ? 0 : r.name.toLowerCase().includes(words[0]) ? 1 : 2;
      results.forEach((r, k) => (r.order = first(r) * 1e6 + k));
      results.sort((a, b) => a.order - b.order);
      marks.found = new Set(results.map(r => r.item));
    }
    chosen = 0;
    const list = $('found');
    list.replaceChildren(
      ...results.slice(0, MOST_FOUND).map((r, k) => {
        const li = document.createElement('li'),
          small = document.createElement('small');
        li.textContent = r.name;
        small.textContent = r.more;
        li.append(small);
        li.onmousedown = e => {
          e.preventDefault();
          go(k);
        };
        return li;
      }),
    );
    if (words.length && (!results.length || results.length > MOST_FOUND)) {
      const li = document.createElement('li');
      li.className = 'none';
      li.textContent = results.length ? `and ${results.length - MOST_FOUND} more` : 'nothing is called so';
      list.append(li);
    }
    list.hidden = !words.length;
    highlight();
    redraw();
  }
  function highlight() {
    [...$('found').children].forEach((li, k) => li.setAttribute('aria-selected', k === chosen));
    const li = $('found').children[chosen];
    if (li) li.scrollIntoView({block: 'nearest'});
  }
  function go(k) {
    if (!results[k]) return;
    chosen = k;
    highlight();
    select(results[k].item);
    reveal(results[k].item);
  }
  // What was made of a weight is called by it.
  const nameOf = (model, i) => {
    const origin = originOf(model, i);
    return origin === i ? model.nodes[i].label : `${model.nodes[origin].label} (${model.nodes[i].label})`;
  };
  const pathOf = (model, group) => {
    const names = [];
    for (let k = group; k >= 0; k = model.groups[k].parent) names.unshift(model.groups[k].name);
    return names.length ? names.join(' / ') + ',  ' : '';
  };

  // ---- what a node is ----
  function select(item) {
    marks.selected = item;
    const about = $('about');
    about.hidden = !item;
    if (!item) return redraw();
    const {model} = picture(),
      facts = $('facts'),
      index = +item.slice(1);
    const head = document.createElement('h2'),
      sub = document.createElement('small'),
      list = document.createElement('dl');
    const row = (key, ...values) => {
      const dt = document.createElement('dt'),
        dd = document.createElement('dd');
      dt.textContent = key;
      dd.append(...values);
      list.append(dt, dd);
    };
    const link = (text, to) => {
      const a = document.createElement('a');
      a.textContent = text;
      a.onclick = () => {
        select(to);
        reveal(to);
      };
      return a;
    };
    const listed = (key, all) => {
      if (!all.length) return;
      const parts = all.slice(0, 12).flatMap((e, k) => [...(k ? [document.createElement('br')] : []), ...e]);
      row(key, ...parts, ...(all.length > 12 ? [document.createElement('br'), `and ${all.length - 12} more`] : []));
    };
    if (item[0] === 'g') {
      const g = model.groups[index];
      head.textContent = g.name;
      sub.textContent = `${g.count} nodes` + (g.weights ? `, ${g.weights} weights` : '');
      if (g.parent >= 0) row('in', pathOf(model, g.parent).replace(/,\s*$/, ''));
      if (g.calls) row('calls', g.calls);
      if (g.where) row('at', g.where);
    } else {
      const n = model.nodes[index];
      head.textContent = nameOf(model, index);
      sub.textContent = n.shape;
      if (n.group >= 0) row('in', pathOf(model, n.group).replace(/,\s*$/, ''));
      for (const line of n.about ? n.about.split('\n') : []) row(...line.split('\t'));
      const entry = (i, view) => [
        link(nameOf(model, i), (model.nodes[i].beside ? 'w' : 'n') + i),
        ' ',
        small(view || model.nodes[i].shape),
      ];
      listed(
        'reads',
        model.into[index].map(e => entry(e.from, e.view)),
      );
      listed(
        'read by',
        model.from[index].map(e => entry(e.to, e.view)),
      );
      listed(
        'written to',
        n.writes.map(i => entry(i)),
      );
      if (n.id >= 0) row('node', '%' + n.id);
    }
    facts.replaceChildren(head, sub, list);
    redraw();
  }
  const small = text => {
    const s = document.createElement('small');
    s.textContent = text;
    return s;
  };

  function hover(at, px, py) {
    const item = at && (!at.box || at.box.kind !== 'open' || at.header) ? at.item : '';
    canvas.classList.toggle('over', !!at && (!at.box || at.box.kind !== 'open' || at.header));
    if (item !== marks.hover) {
      marks.hover = item;
      mark(at);
      redraw();
    }
    const tip = $('tip'),
      {model} = picture();
    tip.hidden = !at || (at.box && at.box.kind === 'open' && !at.header);
    if (tip.hidden) return;
    const b = document.createElement('b'),
      i = nodeOf(at);
    const lines =
      i >= 0
        ? [nameOf(model, i), model.nodes[i].shape, (model.nodes[i].about.match(/(?:^|\n)at\t(.*)/) || [])[1]]
        : [
            model.groups[at.box.group].name,
            at.box.held || '',
            model.groups[at.box.group].where,
            at.box.kind === 'group' ? 'click to open' : 'click to close',
          ];
    b.textContent = lines[0];
    tip.replaceChildren(b, ...lines.slice(1).filter(Boolean).map(small));
    tip.style.left = Math.min(px + 14, size.w - tip.offsetWidth - 8) + 'px';
    tip.style.top = (py + 18 + tip.offsetHeight > size.h ? py - tip.offsetHeight - 10 : py + 18) + 'px';
  }

  // ---- pointers and keys ----
  const pointers = new Map();
  let moved = false;
  canvas.addEventListener('pointerdown', e => {
    canvas.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
    moved = pointers.size > 1;
    $('tip').hidden = true;
  });
  canvas.addEventListener('pointermove', e => {
    const before = pointers.get(e.pointerId);
    if (!before) return hover(under(e.offsetX, e.offsetY), e.offsetX, e.offsetY);
    const dx = e.offsetX - before[0],
      dy = e.offsetY - before[1];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    moved = true;
    canvas.classList.add('moving');
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== e.pointerId)[1];
      const far = Math.hypot(before[0] - other[0], before[1] - other[1]) || 1;
      zoom(
        Math.hypot(e.offsetX - other[0], e.offsetY - other[1]) / far,
        (e.offsetX + other[0]) / 2,
        (e.offsetY + other[1]) / 2,
      );
    } else {
      view.x -= dx / view.scale;
      view.y -= dy / view.scale;
      redraw();
    }
    pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
  });
  const release = e => {
    const held = pointers.delete(e.pointerId);
    canvas.classList.remove('moving');
    if (!held || moved || e.type === 'pointercancel') return;
    const at = under(e.offsetX, e.offsetY);
    if (at && at.box && at.box.kind !== 'node' && (at.box.kind === 'group' || at.header))
      return (select(''), toggle(at.box.group, at.box));
    select(at && (!at.box || at.box.kind === 'node') ? at.item : '');
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', () => hover(null));
  canvas.addEventListener(
    'wheel',
    e => {
      e.preventDefault();
      const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? size.h : 1;
      if (e.shiftKey) ((view.x += ((e.deltaX || e.deltaY) * unit) / view.scale), redraw());
      else
        zoom(
          Math.exp(-Math.max(-300, Math.min(300, e.deltaY * unit)) * (e.ctrlKey ? 0.01 : 0.0016)),
          e.offsetX,
          e.offsetY,
        );
      hover(null);
    },
    {passive: false},
  );
  addEventListener('keydown', e => {
    if (e.target === $('find')) {
      if (e.key === 'Escape') (($('find').value = ''), search(''), canvas.focus());
      if (e.key === 'Enter') {
        // again: the next one
        const next =
          $('found').hidden && results.length ? (chosen + 1) % Math.min(results.length, MOST_FOUND) : chosen;
        go(next);
        $('found').hidden = true;
      }
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
        e.preventDefault();
        $('found').hidden = !results.length;
        chosen = Math.max(
          0,
          Math.min(Math.min(results.length, MOST_FOUND) - 1, chosen + (e.key === 'ArrowDown' ? 1 : -1)),
        );
        highlight();
      }
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = 80 / view.scale,
      keys = {
        '/': () => {
          e.preventDefault();
          $('find').focus();
          $('find').select();
        },
        '+': () => zoom(1.25),
        '=': () => zoom(1.25),
        '-': () => zoom(0.8),
        0: () => whole(0),
        o: () => all(true),
        c: () => all(false),
        t: () => paint(!dark),
        Escape: () => select(''),
        ArrowLeft: () => {
          view.x -= step;
          redraw();
        },
        ArrowRight: () => {
          view.x += step;
          redraw();
        },
        ArrowUp: () => {
          view.y -= step;
          redraw();
        },
        ArrowDown: () => {
          view.y += step;
          redraw();
        },
      };
    if (keys[e.key]) keys[e.key]();
  });

  // ---- the page ----
  function paint(to) {
    dark = to;
    document.documentElement.classList.toggle('dark', dark);
    const looks = THEMES[dark ? 'dark' : 'light'].looks;
    $('legend').replaceChildren(
      ...Object.entries(NAMES).map(([key, name]) => {
        const span = document.createElement('span'),
          dot = document.createElement('i');
        dot.style.background = looks[key];
        span.append(dot, name);
        return span;
      }),
    );
    redraw();
  }
  function show(k) {
    if (pictures[now]) pictures[now].view = {...view};
    now = k;
    [...$('tabs').children].forEach((b, i) => b.setAttribute('aria-selected', i === k));
    if ($('tabs').children[k]) $('tabs').children[k].scrollIntoView({block: 'nearest', inline: 'nearest'});
    Object.assign(marks, {lines: new Set(), selected: '', hover: '', into: ''});
    $('about').hidden = $('tip').hidden = true;
    const kept = picture().view;
    if (kept) Object.assign(view, kept);
    else whole(FIRST_SCALE);
    const text = $('find').value;
    search(text);
    $('found').hidden = true;
    redraw();
  }
  function resize() {
    const first = size.w === 0,
      ratio = devicePixelRatio || 1;
    if (size.w === canvas.clientWidth && size.h === canvas.clientHeight && size.ratio === ratio) return;
    Object.assign(size, {w: canvas.clientWidth, h: canvas.clientHeight, ratio});
    canvas.width = Math.round(size.w * ratio); // this empties it
    canvas.height = Math.round(size.h * ratio);
    if (!first && titles.length) paintNow();
  }
  titles.forEach((title, k) => {
    const b = document.createElement('button');
    b.textContent = title;
    b.setAttribute('role', 'tab');
    b.onclick = () => show(k);
    $('tabs').append(b);
  });
  $('find').oninput = () => search($('find').value);
  $('find').onfocus = () => {
    if ($('find').value) search($('find').value);
  };
  $('find').onblur = () => ($('found').hidden = true);
  $('open').onclick = () => all(true);
  $('close').onclick = () => all(false);
  $('in').onclick = () => zoom(1.25);
  $('out').onclick = () => zoom(0.8);
  $('fit').onclick = () => whole(0);
  $('theme').onclick = () => paint(!dark);
  $('shut').onclick = () => select('');
  new ResizeObserver(resize).observe(canvas);
  resize();
  // The address may say what to show: #picture=2&open=all&find=softmax&theme=dark
  const asked = new URLSearchParams(location.hash.slice(1));
  paint(asked.has('theme') ? asked.get('theme') === 'dark' : dark);
  if (titles.length) show(Math.max(0, Math.min(titles.length - 1, (+asked.get('picture') || 1) - 1)));
  if (asked.has('open')) all(asked.get('open') === 'all');
  if (asked.get('find'))
    (($('find').value = asked.get('find')), search(asked.get('find')), go(0), ($('found').hidden = true));
  if (titles.length) paintNow();
})();
