// Where everything lies.
//
// Each open group is a layered drawing of its own (Sugiyama, Tagawa, Toda 1981): ranks by the longest path, an order within
// each rank that crosses few lines, horizontal places by Brandes and Koepf (2001), lines at right angles in the channels
// between ranks. What enters or leaves a group does so at a port on its edge. A line is drawn within its channel or
// straight down a place of its own in a rank, so none can touch a box that it does not begin or end at.
'use strict';

// ---- one scope: ranks and order ------------------------------------------------------------------------

// A vertex: {item} a box, {port} where a net enters or leaves, {net} a place that a line passes a rank at.
function makeVertices(scope, boxes) {
  const vertices = [],
    byItem = new Map();
  for (const item of scope.items) {
    const v = {
      item,
      box: boxes.get(item),
      rank: 0,
      index: vertices.length,
      before: boxes.get(item).before,
      behind: boxes.get(item).behind,
    };
    byItem.set(item, v);
    vertices.push(v);
  }
  const links = []; // of nets: {net, src, dsts}
  for (const net of scope.nets.values()) {
    const made = {net, src: null, dsts: []};
    const port = side => {
      const v = {port: side, net, rank: 0, index: vertices.length, before: SIZE.port / 2, behind: SIZE.port / 2};
      vertices.push(v);
      return v;
    };
    made.src = net.src === 'in' ? port('in') : byItem.get(net.src);
    for (const dst of net.dsts.keys()) made.dsts.push(dst === 'out' ? port('out') : byItem.get(dst));
    links.push(made);
  }
  return {vertices, links};
}

function makeRanks(vertices, links) {
  for (const v of vertices) ((v.next = []), (v.ins = v.waits = 0));
  for (const l of links) for (const d of l.dsts) (l.src.next.push(d), ++d.ins, ++d.waits);
  const order = vertices.filter(v => v.waits === 0);
  const ports = vertices.some(v => v.port === 'in');
  for (const v of vertices) v.rank = v.port === 'in' || !ports ? 0 : 1;
  for (let k = 0; k < order.length; ++k)
    for (const d of order[k].next) {
      d.rank = Math.max(d.rank, order[k].rank + 1);
      if (--d.waits === 0) order.push(d);
    }
  // what waits for nothing stands just above its first reader
  for (const v of order.reverse())
    if (v.port !== 'in' && v.ins === 0 && v.next.length)
      v.rank = Math.max(v.rank, Math.min(...v.next.map(d => d.rank)) - 1);
  let last = 0;
  for (const v of vertices) if (v.port !== 'out') last = Math.max(last, v.rank);
  for (const v of vertices) if (v.port === 'out') v.rank = last + 1;
}

// Rows of vertices, with places for lines that pass; `up` and `down` of a vertex are segments {net, a, b}.
function makeRows(vertices, links) {
  const rows = [],
    segments = [];
  const put = v => {
    while (rows.length <= v.rank) rows.push([]);
    rows[v.rank].push(v);
    v.up = [];
    v.down = [];
  };
  vertices.forEach(put);
  const segment = (net, a, b) => {
    const s = {net, a, b};
    segments.push(s);
    a.down.push(s);
    b.up.push(s);
  };
  for (const l of links) {
    const far = Math.max(...l.dsts.map(d => d.rank));
    const trunk = [l.src];
    for (let r = l.src.rank + 1; r < far; ++r) {
      const v = {pass: true, net: l.net, rank: r, index: l.src.index, before: 5, behind: 5};
      put(v);
      segment(l.net, trunk[trunk.length - 1], v);
      trunk.push(v);
    }
    for (const d of l.dsts) segment(l.net, trunk[d.rank - 1 - l.src.rank], d);
  }
  return {rows, segments};
}

function crossings(upper, lower) {
  const width = lower.length;
  const tree = new Int32Array(width + 2);
  let total = 0,
    seen = 0;
  for (const v of upper) {
    const to = v.down.map(s => s.b.pos).sort((a, b) => a - b);
    for (const p of to) {
      let below = 0;
      for (let k = p + 1; k > 0; k -= k & -k) below += tree[k];
      total += seen - below;
    }
    for (const p of to) {
      ++seen;
      for (let k = p + 1; k <= width; k += k & -k) ++tree[k];
    }
  }
  return total;
}

function orderRows(rows) {
  const number = () => rows.forEach(row => row.forEach((v, k) => (v.pos = k)));
  for (const row of rows) row.sort((a, b) => a.index - b.index);
  number();
  const total = () => {
    let sum = 0;
    for (let r = 0; r + 1 < rows.length; ++r) sum += crossings(rows[r], rows[r + 1]);
    return sum;
  };
  let best = rows.map(row => row.slice()),
    least = total();
  const sweeps = rows.reduce((n, row) => n + row.length, 0) > 1500 ? 6 : 16;
  for (let sweep = 0; sweep < sweeps && least > 0; ++sweep) {
    const down = sweep % 2 === 0;
    for (let k = 1; k < rows.length; ++k) {
      const row = rows[down ? k : rows.length - 1 - k];
      for (const v of row) {
        const seg = down ? v.up : v.down;
        v.wish = v.pos;
        if (!seg.length) continue;
        v.wish =
          (seg.reduce((sum, s) => sum + relative(rows, down ? s.a : s.b), 0) / seg.length) *
          Math.max(1, row.length - 1);
      }
      // by turns what is equal changes places, so that a sweep is not stuck
      row.sort((a, b) => a.wish - b.wish || (sweep % 4 < 2 ? a.pos - b.pos : b.pos - a.pos));
      row.forEach((v, p) => (v.pos = p));
    }
    const now = total();
    if (now < least) ((least = now), (best = rows.map(row => row.slice())));
  }
  best.forEach((row, r) => (rows[r] = row));
  number();
  if (least > 0) transpose(rows);
}
const relative = (rows, v) => (rows[v.rank].length > 1 ? v.pos / (rows[v.rank].length - 1) : 0.5);

// Neighbours change places where that saves crossings.
function transpose(rows) {
  const pair = (a, b) => {
    // crossings with a left of b
    let n = 0;
    for (const s of a.up) for (const t of b.up) n += s.a.pos > t.a.pos;
    for (const s of a.down) for (const t of b.down) n += s.b.pos > t.b.pos;
    return n;
  };
  for (let round = 0, better = true; better && round < 8; ++round) {
    better = false;
    for (const row of rows)
      for (let k = 0; k + 1 < row.length; ++k) {
        const a = row[k],
          b = row[k + 1];
        if (pair(a, b) <= pair(b, a)) continue;
        ((row[k] = b), (row[k + 1] = a));
        ((b.pos = k), (a.pos = k + 1));
        better = true;
      }
  }
}

// ---- one scope: horizontal places ----------------------------------------------------------------------

// Where a net leaves a vertex or enters it, from its middle.
function outOffset(v, net) {
  return v.box && v.box.ports ? v.box.ports.out.get(net.key) - v.box.w / 2 : 0;
}
function inOffset(v, net) {
  return v.box && v.box.ports ? v.box.ports.in.get(net.key) - v.box.w / 2 : 0;
}
function space(a, b) {
  return a.pass || a.port || b.pass || b.port ? SIZE.gapLine : SIZE.gapX;
}

// Lines that cross one which passes several ranks are not straightened: that one is.
function conflictsOf(rows) {
  const conflicts = new Set();
  for (let r = 1; r + 1 < rows.length; ++r) {
    const upper = rows[r],
      lower = rows[r + 1];
    let left = 0,
      scan = 0;
    lower.forEach((v, k) => {
      const inner = v.pass && v.up.length && v.up[0].a.pass ? v.up[0].a : null;
      if (!inner && k !== lower.length - 1) return;
      const right = inner ? inner.pos : upper.length;
      for (; scan <= k; ++scan)
        for (const s of lower[scan].up)
          if ((s.a.pos < left || s.a.pos > right) && !(s.a.pass && s.b.pass)) conflicts.add(s);
      left = right;
    });
  }
  return conflicts;
}

// One of four: aligned with the rank above (or below), packed to the left (or right). Sets v.at[which].
function aligned(rows, conflicts, below, mirrored, which) {
  const sign = mirrored ? -1 : 1;
  const order = (below ? rows.slice().reverse() : rows).map(row => (mirrored ? row.slice().reverse() : row));
  const place = v => (mirrored ? rows[v.rank].length - 1 - v.pos : v.pos);
  for (const row of order)
    for (const v of row)
      ((v.root = v.align = v), (v.shift = 0), (v.after = null), (v.waits = 0), (v.block = -Infinity));
  for (const row of order) {
    let before = -1;
    for (const v of row) {
      const seg = below ? v.down : v.up;
      if (seg.length > 1) seg.sort((s, t) => place(below ? s.b : s.a) - place(below ? t.b : t.a));
      for (let m = (seg.length - 1) >> 1; seg.length && m <= seg.length >> 1; ++m) {
        const s = seg[m],
          w = below ? s.b : s.a;
        if (v.align !== v || before >= place(w) || conflicts.has(s)) continue;
        w.align = v;
        v.align = v.root = w.root;
        const ends = below ? inOffset(w, s.net) - outOffset(v, s.net) : outOffset(w, s.net) - inOffset(v, s.net);
        v.shift = w.shift + sign * ends;
        before = place(w);
      }
    }
  }
  // blocks from left to right, each as near as what is left of it allows, then as far as what is right of it does
  const blocks = [];
  for (const row of order)
    for (let k = 0; k < row.length; ++k) {
      const v = row[k],
        b = v.root;
      if (!b.after) ((b.after = []), blocks.push(b));
      if (k === 0) continue;
      const u = row[k - 1];
      const gap = space(u, v) + (mirrored ? u.before + v.behind : u.behind + v.before);
      u.root.after.push(b, gap + u.shift - v.shift);
      ++b.waits;
    }
  const done = blocks.filter(b => b.waits === 0);
  for (const b of done) b.block = 0;
  for (let k = 0; k < done.length; ++k) {
    const a = done[k];
    for (let e = 0; e < a.after.length; e += 2) {
      const b = a.after[e];
      b.block = Math.max(b.block, a.block + a.after[e + 1]);
      if (--b.waits === 0) done.push(b);
    }
  }
  for (let k = done.length; k-- > 0;) {
    const a = done[k];
    let most = Infinity;
    for (let e = 0; e < a.after.length; e += 2) most = Math.min(most, a.after[e].block - a.after[e + 1]);
    if (most < Infinity) a.block = Math.max(a.block, most);
  }
  for (const row of order) for (const v of row) v.at[which] = sign * (v.root.block + v.shift);
}

function placeColumns(rows) {
  const conflicts = conflictsOf(rows),
    tries = [];
  for (const row of rows) for (const v of row) v.at = [0, 0, 0, 0];
  for (let which = 0; which < 4; ++which) {
    const mirrored = which % 2 === 1;
    aligned(rows, conflicts, which < 2, mirrored, which);
    let lo = Infinity,
      hi = -Infinity;
    for (const row of rows)
      for (const v of row) ((lo = Math.min(lo, v.at[which] - v.before)), (hi = Math.max(hi, v.at[which] + v.behind)));
    tries.push({lo, hi, mirrored});
  }
  const narrow = tries.reduce((a, b) => (b.hi - b.lo < a.hi - a.lo ? b : a));
  for (const t of tries) t.move = t.mirrored ? narrow.hi - t.hi : narrow.lo - t.lo;
  for (const row of rows)
    for (const v of row) {
      const [a, b, c, d] = v.at.map((x, k) => x + tries[k].move);
      v.x = (a + b + c + d - Math.min(a, b, c, d) - Math.max(a, b, c, d)) / 2; // the mean of the middle two
    }
  // what is left over of rounding, and of four drawings being one
  for (const row of rows)
    for (let k = 1; k < row.length; ++k)
      row[k].x = Math.max(row[k].x, row[k - 1].x + row[k - 1].behind + space(row[k - 1], row[k]) + row[k].before);
  straighten(rows);
  let lo = Infinity,
    hi = -Infinity;
  for (const row of rows)
    for (const v of row) ((lo = Math.min(lo, v.x - v.before)), (hi = Math.max(hi, v.x + v.behind)));
  for (const row of rows) for (const v of row) v.x -= lo;
  return Math.max(0, hi - lo);
}

// A line that passes ranks, or a port, moves below where it comes from, or above where it goes, if there is room: small
// steps aside are ugly.
function straighten(rows) {
  const room = v => {
    const row = rows[v.rank],
      a = row[v.pos - 1],
      b = row[v.pos + 1];
    return [
      a ? a.x + a.behind + space(a, v) + v.before : -Infinity,
      b ? b.x - b.before - space(v, b) - v.behind : Infinity,
    ];
  };
  for (let round = 0; round < 3; ++round)
    for (const row of rows)
      for (const v of row) {
        if (!v.pass && !v.port) continue;
        if (v.pass && v.up[0].a.pass) continue; // moves with the first of its line
        const chain = [v];
        for (let w = v; v.pass;) {
          const s = w.down.find(t => t.b.pass);
          if (!s) break;
          chain.push((w = s.b));
        }
        let lo = -Infinity,
          hi = Infinity;
        for (const w of chain) {
          const [a, b] = room(w);
          lo = Math.max(lo, a);
          hi = Math.min(hi, b);
        }
        const wishes = [];
        for (const s of v.up) wishes.push(s.a.x + outOffset(s.a, s.net));
        const end = chain[chain.length - 1];
        if (end.down.length === 1) wishes.push(end.down[0].b.x + inOffset(end.down[0].b, end.down[0].net));
        const wish = wishes.filter(x => x >= lo && x <= hi).sort((a, b) => Math.abs(a - v.x) - Math.abs(b - v.x))[0];
        if (wish !== undefined) for (const w of chain) w.x = wish;
      }
}

// ---- one scope: lines ----------------------------------------------------------------------------------

// Where lines enter a box: straight below where they come from, if the box is there, and apart from each other.
function placeEntries(v) {
  const seg = v.up.slice();
  if (!v.box || v.box.ports) {
    for (const s of seg) s.bx = v.x + inOffset(v, s.net);
    return;
  }
  const lo = v.x - v.box.w / 2 + 10,
    hi = v.x + v.box.w / 2 - 10;
  const apart = seg.length > 1 ? Math.min(14, (hi - lo) / (seg.length - 1)) : 0;
  seg.sort((s, t) => s.ax - t.ax);
  for (const s of seg) s.bx = Math.min(hi, Math.max(lo, s.ax));
  for (let k = 1; k < seg.length; ++k) seg[k].bx = Math.max(seg[k].bx, seg[k - 1].bx + apart);
  if (seg.length) seg[seg.length - 1].bx = Math.min(hi, seg[seg.length - 1].bx);
  for (let k = seg.length - 1; k-- > 0;) seg[k].bx = Math.min(seg[k].bx, seg[k + 1].bx - apart);
}

// Between two ranks each net is a stem from above, one level stretch and stems down. Levels ("tracks") are given so that
// few lines cross and no two lie upon each other.
function makeTracks(row) {
  const wires = [];
  for (const v of row) {
    const byNet = new Map();
    for (const s of v.down) {
      if (!byNet.has(s.net)) byNet.set(s.net, {net: s.net, a: v, sx: s.ax, to: [], segments: []});
      byNet.get(s.net).to.push(s.bx);
      byNet.get(s.net).segments.push(s);
    }
    wires.push(...byNet.values());
  }
  const bent = [];
  for (const w of wires) {
    w.lo = Math.min(w.sx, ...w.to);
    w.hi = Math.max(w.sx, ...w.to);
    w.track = -1;
    if (w.hi - w.lo > 0.5) bent.push(w);
  }
  const near = 5,
    within = (x, w) => x > w.lo - near && x < w.hi + near;
  const cost = (a, b) => {
    // of a above b
    let n = within(b.sx, a) ? 1 : 0;
    for (const x of a.to) n += within(x, b) ? 1 : 0;
    for (const x of a.to) if (Math.abs(x - b.sx) < near) n += 1000; // b's stem from above, a's down: they would be one line
    return n;
  };
  const score = bent.map(() => 0),
    cheap = bent.length <= 400;
  for (let i = 0; cheap && i < bent.length; ++i)
    for (let j = 0; j < bent.length; ++j)
      if (i !== j && bent[i].lo < bent[j].hi + near && bent[j].lo < bent[i].hi + near)
        score[i] += cost(bent[i], bent[j]) - cost(bent[j], bent[i]);
  const left = new Set(bent.keys()),
    ordered = [];
  while (cheap && left.size) {
    let best = -1;
    for (const i of left) if (best < 0 || score[i] < score[best]) best = i;
    left.delete(best);
    ordered.push(bent[best]);
    for (const i of left) {
      const a = bent[i],
        b = bent[best];
      if (a.lo < b.hi + near && b.lo < a.hi + near) score[i] -= cost(a, b) - cost(b, a);
    }
  }
  if (!cheap) ordered.push(...bent.sort((a, b) => a.lo - b.lo));
  let tracks = 0;
  const placed = [];
  for (const w of ordered) {
    w.track = 0;
    for (const p of placed)
      if (p.lo < w.hi + 2 * near && w.lo < p.hi + 2 * near) w.track = Math.max(w.track, p.track + 1);
    placed.push(w);
    tracks = Math.max(tracks, w.track + 1);
  }
  return {wires, tracks};
}

// ---- a scope as a whole --------------------------------------------------------------------------------

// Sets the places of a scope's boxes and lines, from its own corner, and says how large it is and where its ports are.
function layoutScope(scope, boxes, titleWidth) {
  const {vertices, links} = makeVertices(scope, boxes);
  makeRanks(vertices, links);
  const {rows} = makeRows(vertices, links);
  orderRows(rows);
  const width = placeColumns(rows);
  const portRow = row => row.length > 0 && row.every(v => v.port);
  const made = {boxes: [], lines: [], ports: {in: new Map(), out: new Map()}, w: width, h: 0};
  let y = 0;
  rows.forEach((row, r) => {
    const last = r + 1 === rows.length;
    const height = Math.max(0, ...row.map(v => (v.box ? v.box.height : 0)));
    for (const v of row) {
      v.top = v.bottom = y; // where lines end
      if (v.box) {
        v.top = y + (height - v.box.h) / 2;
        v.bottom = v.top + v.box.h;
        made.boxes.push({item: v.item, box: v.box, x: v.x - v.box.w / 2, y: v.top, w: v.box.w, h: v.box.h});
      } else if (v.pass) {
        v.bottom = y + height;
      } else {
        made.ports[v.port].set(v.net.key, v.x);
      }
      for (const s of v.down) s.ax = v.x + outOffset(v, s.net);
    }
    if (last) {
      made.h = y + height;
      return;
    }
    rows[r + 1].forEach(placeEntries);
    const {wires, tracks} = makeTracks(row);
    const top = y + height;
    const margin = portRow(row) || portRow(rows[r + 1]) ? SIZE.channel / 3 : SIZE.channel / 2;
    for (const w of wires) w.y = top + margin + w.track * SIZE.track;
    made.wires = (made.wires || []).concat(wires);
    y = top + 2 * margin + Math.max(0, tracks - 1) * SIZE.track;
  });
  for (const w of made.wires || [])
    for (const s of w.segments) {
      const from = w.a.bottom,
        to = s.b.top;
      const points =
        Math.abs(s.ax - s.bx) < 0.5 ? [s.ax, from, s.ax, to] : [s.ax, from, s.ax, w.y, s.bx, w.y, s.bx, to];
      if (s.b.pass) points.push(points[points.length - 2], s.b.bottom);
      made.lines.push({
        net: w.net.key,
        points,
        arrow: !!s.b.box && !s.b.box.ports,
        dst: s.b.item || null,
        count: w.net.dsts.get(s.b.item) || 1,
        edges: w.net.edges,
      });
    }
  delete made.wires;
  return made;
}

// Everything: boxes from the outside in, and lines, in the picture's own units.
function layout(model, open, measure) {
  const scopes = makeScopes(model, open);
  const build = (k, content) => {
    const boxes = new Map();
    for (const i of content.nodes) boxes.set('n' + i, nodeBox(model, i, measure));
    for (const g of content.groups)
      boxes.set(
        'g' + g,
        open.has(g) ? openBox(model, g, build(g, model.groups[g]), measure) : groupBox(model, g, measure),
      );
    return layoutScope(scopes.get(k), boxes);
  };
  const whole = build(-1, model.roots),
    out = {boxes: [], lines: [], chips: [], w: whole.w, h: whole.h, byItem: new Map()};
  const flatten = (scope, x, y, within) => {
    for (const l of scope.lines) {
      l.within = within;
      for (let k = 0; k < l.points.length; k += 2) ((l.points[k] += x), (l.points[k + 1] += y));
      out.lines.push(l);
    }
    for (const b of scope.boxes) {
      const box = Object.assign(b.box, {item: b.item, x: b.x + x, y: b.y + y, depth: within.length});
      out.boxes.push(box);
      out.byItem.set(b.item, box);
      placeChips(box, out);
      if (b.box.kind === 'open') {
        // a port's line goes on to the edge of its group
        for (const [key, px] of b.box.ports.in)
          out.lines.push({
            net: key,
            points: [box.x + px, box.y, box.x + px, box.y + b.box.dy],
            edges: [],
            arrow: false,
            within: [...within, b.box.group],
          });
        flatten(b.box.inner, box.x + b.box.dx, box.y + b.box.dy, [...within, b.box.group]);
      }
    }
  };
  flatten(whole, 0, 0, []);
  return out;
}

function placeChips(box, out) {
  for (const side of ['left', 'right']) {
    const list = box[side],
      height = list.length * (SIZE.chip + SIZE.chipGap) - SIZE.chipGap;
    list.forEach((c, k) =>
      out.chips.push({
        ...c,
        owner: box.item,
        side,
        x: side === 'left' ? box.x - SIZE.chipSpace - c.w : box.x + box.w + SIZE.chipSpace,
        y: box.y + box.h / 2 - height / 2 + k * (SIZE.chip + SIZE.chipGap),
        edge: side === 'left' ? box.x : box.x + box.w,
        at: Math.min(
          box.y + box.h - 6,
          Math.max(box.y + 6, box.y + box.h / 2 - height / 2 + k * (SIZE.chip + SIZE.chipGap) + SIZE.chip / 2),
        ),
      }),
    );
  }
}

if (typeof module !== 'undefined')
  module.exports = {makeModel, makeScopes, openAtFirst, layout, originOf, fit, LOOK, SIZE};
