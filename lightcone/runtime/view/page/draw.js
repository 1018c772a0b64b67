// Draws what layout() has placed onto a canvas: only what is in sight, and what can be read at this size.
'use strict';
const FAMILY = 'Inter, "Segoe UI", "Helvetica Neue", "Noto Sans", Arial, system-ui, sans-serif';
const FONTS = {title: '600 12.5px ' + FAMILY, sub: '11px ' + FAMILY, chip: '10.5px ' + FAMILY};
const THEMES = {
  light: {
    back: '#f6f7f9',
    box: '#ffffff',
    edge: '#cfd5dd',
    ink: '#1c2430',
    soft: '#667181',
    line: '#a3adba',
    accent: '#2f6feb',
    found: '#e8a100',
    chip: '#fbf7ec',
    chipEdge: '#e2d6b5',
    chipInk: '#6b5a25',
    group: ['#eef1f5', '#e6eaf0', '#eef1f5', '#e6eaf0'],
    groupEdge: '#ccd3dc',
    closed: '#fdfdfe',
    looks: {
      input: '#7b5bd6',
      product: '#2f6feb',
      loop: '#12917f',
      reduce: '#d0741c',
      copy: '#8b95a3',
      other: '#b0578f',
      output: '#3c4656',
      weight: '#c2a54a',
      state: '#c2a54a',
    },
  },
  dark: {
    back: '#14171c',
    box: '#23282f',
    edge: '#3d4651',
    ink: '#e6eaf0',
    soft: '#9aa5b4',
    line: '#5f6a78',
    accent: '#6ea0ff',
    found: '#f2b632',
    chip: '#2b2920',
    chipEdge: '#50492f',
    chipInk: '#d6c68d',
    group: ['#1a1e24', '#1f242b', '#1a1e24', '#1f242b'],
    groupEdge: '#38404a',
    closed: '#272d35',
    looks: {
      input: '#a68bf0',
      product: '#6ea0ff',
      loop: '#3cbfaa',
      reduce: '#e39a4f',
      copy: '#8b95a3',
      other: '#d583b6',
      output: '#aab4c2',
      weight: '#c9b05e',
      state: '#c9b05e',
    },
  },
};
const NAMES = {
  input: 'input, output',
  product: 'products, attention, convolutions',
  loop: 'elementwise',
  reduce: 'reductions',
  copy: 'copies',
  other: 'other operations',
  weight: 'weights and states',
};

function lookOf(node) {
  switch (node.look) {
    case LOOK.input:
      return 'input';
    case LOOK.output:
      return 'output';
    case LOOK.weight:
    case LOOK.state:
      return 'weight';
    case LOOK.numbers:
    case LOOK.copy:
      return 'copy';
    case LOOK.elementwise:
      return 'loop';
    case LOOK.reduce:
      return 'reduce';
    case LOOK.kernel:
      if (/made by\t.*(matmul|conv|attention)/.test(node.about)) return 'product';
      return /made by\t.*loop/.test(node.about) ? 'loop' : /^result|^pack/.test(node.label) ? 'copy' : 'other';
    default:
      return 'other';
  }
}

function canvasMeasure(context) {
  const known = {title: new Map(), sub: new Map(), chip: new Map()};
  return (text, font) => {
    const map = known[font];
    if (!map.has(text)) {
      context.font = FONTS[font];
      map.set(text, context.measureText(text).width);
    }
    return map.get(text);
  };
}

function roundRect(c, x, y, w, h, r) {
  r = Math.min(r, w / 2, h / 2);
  c.beginPath();
  c.moveTo(x + r, y);
  c.arcTo(x + w, y, x + w, y + h, r);
  c.arcTo(x + w, y + h, x, y + h, r);
  c.arcTo(x, y + h, x, y, r);
  c.arcTo(x, y, x + w, y, r);
  c.closePath();
}

function drawLine(c, p, arrow) {
  const n = p.length,
    endX = p[n - 2],
    endY = p[n - 1] - (arrow ? 5 : 0);
  c.beginPath();
  c.moveTo(p[0], p[1]);
  for (let k = 2; k < n - 2; k += 2) {
    const dx = Math.abs(p[k] - p[k - 2]) + Math.abs(p[k + 1] - p[k - 1]),
      dy = Math.abs(p[k + 2] - p[k]) + Math.abs(p[k + 3] - p[k + 1]);
    c.arcTo(p[k], p[k + 1], p[k + 2], p[k + 3], Math.min(6, dx / 2, dy / 2));
  }
  c.lineTo(endX, endY);
  c.stroke();
  if (!arrow) return;
  c.beginPath();
  c.moveTo(endX, p[n - 1] - 0.5);
  c.lineTo(endX - 3.5, p[n - 1] - 7);
  c.lineTo(endX + 3.5, p[n - 1] - 7);
  c.closePath();
  c.fill();
}

// view: {x, y, scale} of the corner; marks: {lines: Set of nets, selected, hover, found: Set of items}
function draw(c, size, model, scene, view, theme, marks) {
  const t = THEMES[theme],
    s = view.scale;
  c.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  c.fillStyle = t.back;
  c.fillRect(0, 0, size.w, size.h);
  c.setTransform(size.ratio * s, 0, 0, size.ratio * s, -view.x * s * size.ratio, -view.y * s * size.ratio);
  const x0 = view.x - 20,
    y0 = view.y - 20,
    x1 = view.x + size.w / s + 20,
    y1 = view.y + size.h / s + 20;
  const seen = (x, y, w, h) => x < x1 && x + w > x0 && y < y1 && y + h > y0;
  c.textBaseline = 'alphabetic';
  c.textAlign = 'left';
  for (const b of scene.boxes) if (b.kind === 'open' && seen(b.x, b.y, b.w, b.h)) drawOpen(c, b, t, s, marks);
  drawLines(c, scene, t, s, seen, marks);
  for (const chip of scene.chips)
    if (s > 0.16 && seen(chip.x - 20, chip.y, chip.w + 40, chip.h)) drawChip(c, model, chip, t, s, marks);
  for (const b of scene.boxes)
    if (seen(b.x, b.y, b.w, b.h)) b.kind === 'open' ? drawTitle(c, b, t, s) : drawBox(c, model, b, t, s, marks);
  if (s < 0.3) drawFarNames(c, scene, t, s, seen);
}

// From far away: the names of groups that are large enough for them, at a size that can be read.
function drawFarNames(c, scene, t, s, seen) {
  const font = 11 / s;
  c.font = FONTS.title.replace('12.5px', font + 'px');
  c.fillStyle = t.ink;
  c.lineJoin = 'round';
  c.lineWidth = 3.5 / s;
  for (const b of scene.boxes) {
    if (b.kind === 'node' || b.h < 1.5 * font || !seen(b.x, b.y, b.w, b.h)) continue;
    const text = b.lines.join(' ');
    if (c.measureText(text).width > b.w - font) continue;
    c.strokeStyle = b.kind === 'open' ? t.group[b.depth % t.group.length] : t.box;
    c.strokeText(text, b.x + font / 2, b.y + 1.15 * font);
    c.fillText(text, b.x + font / 2, b.y + 1.15 * font);
  }
}

function drawOpen(c, b, t, s, marks) {
  roundRect(c, b.x, b.y, b.w, b.h, 9);
  c.fillStyle = t.group[b.depth % t.group.length];
  c.fill();
  c.strokeStyle = marks.found.has(b.item)
    ? t.found
    : b.item === marks.selected || b.item === marks.hover
      ? t.accent
      : t.groupEdge;
  c.lineWidth = Math.max(1, 0.7 / s) * (marks.found.has(b.item) ? 3 : 1);
  c.stroke();
}

function drawTitle(c, b, t, s) {
  if (s < 0.3) return;
  const x = b.x + b.titleX + 12,
    y = b.y + 20;
  drawSign(c, x + 4, y - 4.5, t.soft, false);
  c.font = FONTS.title;
  c.fillStyle = t.soft;
  c.fillText(b.lines[0], x + 15, y);
}

// + and -
function drawSign(c, x, y, colour, plus) {
  c.strokeStyle = colour;
  c.lineWidth = 1.4;
  c.beginPath();
  c.moveTo(x - 4, y);
  c.lineTo(x + 4, y);
  if (plus) (c.moveTo(x, y - 4), c.lineTo(x, y + 4));
  c.stroke();
}

function drawLines(c, scene, t, s, seen, marks) {
  const wide = Math.max(1.1, 0.6 / s);
  c.strokeStyle = c.fillStyle = t.line;
  c.lineWidth = wide;
  c.globalAlpha = marks.lines.size ? 0.45 : 1;
  const marked = [],
    far = s < 0.2; // neither corners nor arrows can be seen: all lines are one path
  if (far) c.beginPath();
  for (const l of scene.lines) {
    const p = l.points;
    const left = Math.min(p[0], p[p.length - 2]),
      right = Math.max(p[0], p[p.length - 2]);
    if (!seen(left - 2, p[1], right - left + 4, p[p.length - 1] - p[1])) continue;
    if (marks.lines.has(l.net) || (l.dst && l.dst === marks.into)) marked.push(l);
    else if (!far) drawLine(c, p, l.arrow);
    else for (let k = 0; k < p.length; k += 2) k ? c.lineTo(p[k], p[k + 1]) : c.moveTo(p[k], p[k + 1]);
  }
  if (far) c.stroke();
  c.globalAlpha = 1;
  c.strokeStyle = c.fillStyle = t.accent;
  c.lineWidth = wide * 1.5;
  for (const l of marked) drawLine(c, l.points, l.arrow && !far);
}

function drawChip(c, model, chip, t, s, marks) {
  const item = chip.node < 0 ? '' : 'w' + chip.node,
    mark = item && (item === marks.hover || item === marks.selected);
  c.strokeStyle = marks.found.has(item) ? t.found : mark ? t.accent : t.chipEdge;
  c.lineWidth = marks.found.has(item) ? 2 : 1;
  c.beginPath();
  const middle = chip.y + chip.h / 2,
    from = chip.side === 'left' ? chip.x + chip.w : chip.x,
    turn = (from + chip.edge) / 2;
  c.moveTo(from, middle);
  if (Math.abs(middle - chip.at) > 0.5) (c.lineTo(turn, middle), c.lineTo(turn, chip.at));
  c.lineTo(chip.edge, chip.at);
  c.stroke();
  roundRect(c, chip.x, chip.y, chip.w, chip.h, chip.h / 2);
  c.fillStyle = t.chip;
  c.fill();
  c.stroke();
  if (s < 0.45) return;
  c.font = FONTS.chip;
  c.fillStyle = t.chipInk;
  c.fillText(chip.label, chip.x + 7, chip.y + 13);
}

function drawBox(c, model, b, t, s, marks) {
  const closed = b.kind === 'group',
    node = closed ? null : model.nodes[b.node];
  const look = closed ? '' : lookOf(node),
    colour = closed ? t.soft : t.looks[look];
  const end = look === 'input' || look === 'output',
    r = end ? Math.min(18, b.h / 2) : 6;
  const found = marks.found.has(b.item),
    mark = b.item === marks.selected || b.item === marks.hover;
  if (s < 0.12 && !found && !mark) {
    c.fillStyle = closed ? t.edge : colour;
    c.fillRect(b.x, b.y, b.w, b.h);
    return;
  }
  if (closed && s > 0.2)
    // a pile
    for (const k of [6, 3]) {
      roundRect(c, b.x + k, b.y + k, b.w - 2 * k + k, b.h, r);
      c.fillStyle = t.closed;
      c.fill();
      c.strokeStyle = t.edge;
      c.lineWidth = 1;
      c.stroke();
    }
  roundRect(c, b.x, b.y, b.w, b.h, r);
  c.fillStyle = s < 0.3 && !closed ? colour : t.box;
  c.fill();
  if (!closed && !end && s >= 0.3) {
    c.save();
    c.clip();
    c.fillStyle = colour;
    c.fillRect(b.x, b.y, 4, b.h);
    c.restore();
    roundRect(c, b.x, b.y, b.w, b.h, r);
  }
  c.strokeStyle = found ? t.found : mark ? t.accent : end ? colour : t.edge;
  c.lineWidth = Math.max(found ? 2.5 : mark ? 1.8 : 1, (found ? 2 : 0.6) / s);
  c.stroke();
  if (s < 0.3) return;
  let y = b.y + SIZE.padY + 11;
  c.font = FONTS.title;
  c.fillStyle = t.ink;
  for (const line of b.lines) {
    c.fillText(line, b.x + SIZE.padX, y);
    y += SIZE.title;
  }
  if (closed) drawSign(c, b.x + b.w - 14, b.y + SIZE.padY + 7, t.accent, true);
  c.font = FONTS.sub;
  c.fillStyle = t.soft;
  if (s > 0.4) c.fillText(b.sub, b.x + SIZE.padX, y - 1);
}
