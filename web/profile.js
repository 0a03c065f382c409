// SPDX-License-Identifier: MIT
// A profile over time: when its samples were taken, the flame graph of a stretch of time and what
// differs there, tracks of threads with their waits, callers and callees of a function, its code.

// ---- which functions differ in a stretch of time ----

// The chance of a value of Student's t as far from 0, by Wallace's approximation to the normal.
function chanceOfT(t, freedom) {
  const z = Math.sqrt(freedom * Math.log1p((t * t) / freedom)) * ((8 * freedom + 1) / (8 * freedom + 3));
  const k = 1 / (1 + 0.2316419 * z);
  const tail = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI) *
    k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
  return Math.min(1, 2 * tail);
}

// A program that does things in turns has samples that resemble their neighbours: a short stretch of time
// is then one turn or two, however many samples it has.  How much shares vary is seen from block to block
// of samples that follow each other, on the same side of the borders of the stretch.  Turns can be as long
// as a twentieth of the recording, whatever the stretch is: the blocks are parts of the recording.
const BLOCKS = [8, 12, 16, 24];
const BLOCK_LEAST = 6; // samples
const SIDE_LEAST = 20;

// Where each sample belongs: the number of its block, or -1 at the end of a run that does not fill a block; and
// which blocks are neighbours.
function layBlocks(inside, parts) {
  const length = Math.floor(inside.length / parts);
  const block = new Int32Array(inside.length).fill(-1);
  const pairs = [];
  let count = 0;
  for (let from = 0; from < inside.length;) {
    let to = from;
    while (to < inside.length && Boolean(inside[to]) === Boolean(inside[from])) to++;
    const here = Math.floor((to - from) / length);
    for (let b = 0; b < here; b++) {
      block.fill(count + b, from + b * length, from + (b + 1) * length);
      if (b) pairs.push(count + b);
    }
    count += here;
    from = to;
  }
  return { length, block, pairs, count };
}

// How much the shares of a function differ between neighbours, and how much chance alone would make them.
// A program that goes from one phase to another makes one large step, within a block or between two: that
// is what is looked for, not noise, so the largest step is left out, with a neighbour that goes the same way.
function variationOf(hits, { length, pairs }) {
  const changeAt = (k) => (hits[pairs[k]] - hits[pairs[k] - 1]) / length;
  let [most, left] = [0, [-1, -1]];
  let [found, chance] = [0, 0];
  for (let k = 0; k < pairs.length; k++) {
    const change = changeAt(k);
    const pooled = (hits[pairs[k]] + hits[pairs[k] - 1]) / (2 * length);
    found += change ** 2;
    chance += (2 * pooled * (1 - pooled)) / length;
    if (change ** 2 > most) [most, left] = [change ** 2, [k, k]];
    const next = pairs[k + 1] === pairs[k] + 1 ? changeAt(k + 1) : 0;
    if (change * next > 0 && change ** 2 + next ** 2 > most) [most, left] = [change ** 2 + next ** 2, [k, k + 1]];
  }
  for (let k = left[0]; k >= 0 && k <= left[1]; k++) {
    const pooled = (hits[pairs[k]] + hits[pairs[k] - 1]) / (2 * length);
    chance -= (2 * pooled * (1 - pooled)) / length;
  }
  return chance > 1e-9 ? { found: found - most, chance } : { found: 0, chance: 0 };
}

// What leaving out the largest step takes away from chance, and taking the largest of several lengths adds.
const WITHOUT_LARGEST = 1.5;
const LEAST_PAIRS = 4;

// How many times the variance of independent samples each function has, and with how many degrees of
// freedom that is known.  All functions share the program's turns: one that is seldom seen outside has no
// variation of its own to be judged by, so the others' counts at least.
function excessesOf(stacks, inside, tested, names) {
  const excess = tested.map(() => ({ times: 1, freedom: 30 }));
  const row = new Int32Array(names).fill(-1);
  tested.forEach((name, k) => { row[name] = k; });
  const rows = stacks.map((stack) => stack.map((name) => row[name]).filter((k) => k >= 0));
  for (const parts of BLOCKS) {
    const lay = layBlocks(inside, parts);
    if (lay.length < BLOCK_LEAST || lay.pairs.length < LEAST_PAIRS) continue;
    const hits = new Float64Array(tested.length * lay.count);
    rows.forEach((list, i) => {
      if (lay.block[i] >= 0) for (const k of list) hits[k * lay.count + lay.block[i]]++;
    });
    const all = tested.map((_, k) => variationOf(hits.subarray(k * lay.count, (k + 1) * lay.count), lay));
    const found = all.reduce((sum, of) => sum + of.found, 0);
    const chance = all.reduce((sum, of) => sum + of.chance, 0);
    all.forEach((of, k) => {
      const own = of.chance ? of.found / of.chance : 0;
      const times = WITHOUT_LARGEST * Math.max(own, chance ? found / chance : 0);
      if (times > excess[k].times) excess[k] = { times, freedom: Math.max(lay.pairs.length - 2, 3) };
    });
  }
  return excess;
}

// For every function (a number below `names`) whether its share of the samples is larger (1) or
// smaller (-1) inside than outside, beyond chance; 0 else.  `stacks` are the names on the stack of
// each sample, each once, in the order of time; `inside` says which are inside.  Quasi-binomial: the
// variance is as large as the blocks show, not less than that of independent samples.  The family is
// corrected with Benjamini and Hochberg's method at 5 %.
function judgeRange(stacks, inside, names) {
  const marks = new Int8Array(names);
  const counts = new Map();
  const totals = [0, 0];
  stacks.forEach((stack, i) => {
    const side = inside[i] ? 1 : 0;
    totals[side]++;
    for (const name of stack) {
      if (!counts.has(name)) counts.set(name, [0, 0]);
      counts.get(name)[side]++;
    }
  });
  const whole = totals[0] + totals[1];
  if (Math.min(...totals) < SIDE_LEAST) return { marks, tested: 0, totals };
  for (const [name, [a, b]] of counts) if (a + b < 5 || a + b >= whole) counts.delete(name);
  const excess = excessesOf(stacks, inside, [...counts.keys()], names);
  const tests = [...counts].map(([name, of], k) => {
    const pooled = (of[0] + of[1]) / whole;
    const { times, freedom } = excess[k];
    const per = totals.map((total) => Math.min(times, total) / total); // all of a side is one turn at most
    const error = Math.sqrt(pooled * (1 - pooled) * (per[0] + per[1]));
    const difference = of[1] / totals[1] - of[0] / totals[0];
    return { name, way: Math.sign(difference), p: chanceOfT(Math.abs(difference / error), freedom) };
  });
  tests.sort((a, b) => a.p - b.p);
  let last = -1;
  tests.forEach((t, i) => { if (t.p <= (0.05 * (i + 1)) / tests.length) last = i; });
  for (const t of tests.slice(0, last + 1)) marks[t.name] = t.way;
  return { marks, tested: tests.length, totals };
}

// ---- when ----

function timesOf(profile) {
  if (!profile.moments || !profile.moments.us.length) return null;
  let at = 0;
  return profile.moments.us.map((step) => (at += step));
}

const secondsText = (us) => (us >= 1e6 ? `${(us / 1e6).toFixed(3)} s` : `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`);

// Columns are stretches of a round length, rows parts of these, the first on top.
const PARTS = 20;

function layTime(times, across) {
  const span = times[times.length - 1] + 1;
  const wanted = Math.max(8, Math.min(across / 12, Math.round(times.length / PARTS / 2)));
  let column = 10 ** Math.floor(Math.log10(span / wanted));
  for (const factor of [2, 2.5, 2, 2, 2.5, 2]) {
    if (span / column <= wanted) break;
    column *= factor;
  }
  column = Math.max(column, PARTS);
  const columns = Math.ceil(span / column);
  const counts = new Uint32Array(columns * PARTS);
  for (const t of times) counts[Math.min(Math.floor((t * PARTS) / column), counts.length - 1)]++;
  return { column, columns, part: column / PARTS, counts, span };
}

class TimeMap {
  constructor(box, graph, profile) {
    Object.assign(this, { box, graph, profile, times: timesOf(profile), range: null, cursor: 0, anchor: null });
    this.across = unitsAcross(box);
    this.lay = layTime(this.times, this.across);
    this.svg = svgNode('svg', { class: 'heat', viewBox: `0 0 ${this.across} 132`, tabindex: '0', role: 'application',
      'aria-roledescription': 'time map: arrow keys move, Shift extends, Enter shows that time, Escape everything',
      'aria-label': `When the ${this.times.length.toLocaleString('en-US')} samples were taken` });
    this.words = make('p', { className: 'detail' });
    this.words.setAttribute('aria-live', 'polite');
    this.modes = make('span', { className: 'modes', hidden: true });
    for (const [value, text] of [['only', 'only this time'], ['rest', 'against the rest']]) {
      const input = make('input', { type: 'radio', name: `mode-${graph.svg.id}`, value });
      input.checked = value === 'only';
      input.addEventListener('change', () => this.apply());
      this.modes.append(make('label', {}, input, ` ${text}`), ' ');
    }
    const clear = make('button', { type: 'button', textContent: 'The whole time' });
    clear.addEventListener('click', () => this.clear());
    this.modes.append(clear);
    const every = profile.moments.every > 1 ? ` (one of ${profile.moments.every} is kept)` : '';
    box.append(make('h4', { textContent: 'When' }), make('p', { className: 'note', textContent:
      `A column is ${secondsText(this.lay.column)}, from top to bottom; the stronger the shade, the more samples${every}. Drag over a stretch of time to see its flame graph.` }),
    this.svg, this.words, this.modes);
    exportPicture(this.svg, `When the samples of ${profile.label} were taken`);
    this.draw();
    this.listen();
  }

  draw() {
    const { columns, counts } = this.lay;
    const [w, h] = [this.across / columns, 6];
    this.cell = [w, h];
    const most = counts.reduce((a, b) => Math.max(a, b), 1);
    const cells = [];
    counts.forEach((count, k) => {
      if (!count) return;
      cells.push(svgNode('rect', { x: (Math.floor(k / PARTS) * w).toFixed(1), y: (k % PARTS) * h, width: (w - 0.4).toFixed(1),
        height: h - 0.4, 'fill-opacity': (0.15 + 0.85 * (count / most)).toFixed(2) }));
    });
    this.chosen = svgNode('path', { class: 'chosen', d: '' });
    const ends = [svgNode('text', { x: 0, y: 131 }, '0 s'),
      svgNode('text', { x: this.across, y: 131, 'text-anchor': 'end' }, secondsText(this.lay.span))];
    this.svg.replaceChildren(...cells, this.chosen, ...ends);
  }

  // Numbers of parts, the second one inside.
  outline(from, to) {
    const [w, h] = this.cell;
    const box = (k, length) => `M${(Math.floor(k / PARTS) * w).toFixed(1)} ${(k % PARTS) * h}h${w.toFixed(1)}v${length * h}h${(-w).toFixed(1)}z`;
    let d = '';
    for (let k = from; k <= to;) {
      const length = Math.min(PARTS - (k % PARTS), to - k + 1);
      d += box(k, length);
      k += length;
    }
    this.chosen.setAttribute('d', d);
  }

  partAt(event) {
    const box = this.svg.getBoundingClientRect();
    const scale = this.across / box.width;
    const column = Math.max(0, Math.min(this.lay.columns - 1, Math.floor(((event.clientX - box.left) * scale) / this.cell[0])));
    const row = Math.max(0, Math.min(PARTS - 1, Math.floor(((event.clientY - box.top) * scale) / this.cell[1])));
    return column * PARTS + row;
  }

  listen() {
    let start = null;
    this.svg.addEventListener('pointerdown', (event) => {
      start = this.partAt(event);
      this.svg.setPointerCapture(event.pointerId);
      this.outline(start, start);
      event.preventDefault();
    });
    this.svg.addEventListener('pointermove', (event) => {
      if (start === null) return;
      const now = this.partAt(event);
      this.outline(Math.min(start, now), Math.max(start, now));
    });
    this.svg.addEventListener('pointerup', (event) => {
      if (start === null) return;
      const now = this.partAt(event);
      this.choose(Math.min(start, now), Math.max(start, now));
      start = null;
    });
    this.svg.addEventListener('keydown', (event) => this.key(event));
  }

  key(event) {
    const step = { ArrowRight: PARTS, ArrowLeft: -PARTS, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') this.clear();
    else if (event.key === 'Enter') this.choose(Math.min(this.anchor ?? this.cursor, this.cursor), Math.max(this.anchor ?? this.cursor, this.cursor));
    else if (step) {
      this.anchor = event.shiftKey ? this.anchor ?? this.cursor : null;
      this.cursor = Math.max(0, Math.min(this.lay.counts.length - 1, this.cursor + step));
      const other = this.anchor ?? this.cursor;
      this.outline(Math.min(other, this.cursor), Math.max(other, this.cursor));
    } else return;
    event.preventDefault();
  }

  choose(from, to) {
    this.range = [from, to];
    this.outline(from, to);
    this.apply();
  }

  clear() {
    this.range = null;
    this.anchor = null;
    this.chosen.setAttribute('d', '');
    this.apply();
  }

  get mode() {
    return this.modes.querySelector('input:checked').value;
  }

  apply() {
    const { svg } = this.graph;
    this.modes.hidden = !this.range;
    keepState(`range-${svg.id}`, this.range ? `${this.range.join('-')}-${this.mode}` : '');
    if (!this.range) {
      this.words.textContent = '';
      this.graph.setRange(null);
      return;
    }
    const from = this.range[0] * this.lay.part;
    const to = (this.range[1] + 1) * this.lay.part;
    const inside = this.times.map((t) => t >= from && t < to);
    const count = inside.filter(Boolean).length;
    this.words.textContent = `${secondsText(from)} to ${secondsText(to)}: ${count.toLocaleString('en-US')} of ${this.times.length.toLocaleString('en-US')} samples.`;
    if (!count) return;
    const told = this.graph.setRange({ inside, versus: this.mode === 'rest' });
    if (told) this.words.textContent += ` ${told}`;
  }

  restore() {
    const text = chosen.get(`range-${this.graph.svg.id}`) ?? '';
    const match = /^(\d+)-(\d+)-(only|rest)$/.exec(text);
    if (!match || Number(match[2]) >= this.lay.counts.length || Number(match[1]) > Number(match[2])) return;
    this.modes.querySelector(`input[value=${match[3]}]`).checked = true;
    this.choose(Number(match[1]), Number(match[2]));
  }
}

// ---- tracks of threads ----

const TRACKS = 16;

function threadTracks(profile, functions, across) {
  const { waits, threads } = profile;
  if (!waits || !waits.us.length) return null;
  const times = timesOf(profile) ?? [];
  let at = 0;
  const starts = waits.us.map((step) => (at += step));
  const span = Math.max(times.length ? times[times.length - 1] : 0, ...starts.map((s, i) => s + waits.length_us[i]), 1);
  const busy = threads.map(() => 0);
  profile.moments.thread.forEach((t) => { busy[t] += 1; });
  waits.thread.forEach((t) => { busy[t] += 1; });
  const shown = threads.map((_, i) => i).filter((i) => busy[i]).sort((a, b) => busy[b] - busy[a]).slice(0, TRACKS);
  const [LEFT, ROWS] = [across < WIDTH ? 100 : 150, 20];
  const x = (us) => LEFT + ((across - LEFT) * us) / span;
  const svg = svgNode('svg', { class: 'tracks', viewBox: `0 0 ${across} ${shown.length * ROWS + 16}`, role: 'img',
    'aria-label': 'Threads over time: samples on the CPU, and waits' });
  shown.forEach((thread, row) => {
    const y = row * ROWS;
    const [name, tid] = threads[thread];
    svg.append(svgNode('text', { x: 0, y: y + 13 }, across < WIDTH ? name.slice(0, 15) : `${name.slice(0, 14)} ${tid}`));
    starts.forEach((start, i) => {
      if (waits.thread[i] !== thread) return;
      const width = Math.max(x(start + waits.length_us[i]) - x(start), 0.4);
      const rect = svgNode('rect', { class: 'wait', x: x(start).toFixed(1), y: y + 6, width: width.toFixed(1), height: 6 });
      rect.append(svgNode('title', {}, `${name} ${tid} waited ${secondsText(waits.length_us[i])} in ${functions[waits.name[i]].name}`));
      svg.append(rect);
    });
    let d = '';
    profile.moments.thread.forEach((t, i) => { if (t === thread) d += `M${x(times[i]).toFixed(1)} ${y + 2}v14`; });
    svg.append(svgNode('path', { class: 'ran', d }));
  });
  svg.append(svgNode('text', { x: LEFT, y: shown.length * ROWS + 12 }, '0 s'),
    svgNode('text', { x: across, y: shown.length * ROWS + 12, 'text-anchor': 'end' }, secondsText(span)));
  const left = waits.left_out ? ` Of the waits, the ${waits.us.length.toLocaleString('en-US')} longest are drawn; ${waits.left_out.toLocaleString('en-US')} are not.` : '';
  const hidden = threads.length > shown.length ? ` ${threads.length - shown.length} more threads are not drawn.` : '';
  const box = make('div', {}, make('h4', { textContent: 'Threads' }), make('p', { className: 'note',
    textContent: `Tall lines: a sample on the CPU. Bars: off the CPU, with the function that waited on hover.${left}${hidden}` }), svg);
  exportPicture(svg, `Threads of ${profile.label}`);
  return box;
}

// What stands below the picture itself: its words and the buttons that save it.
function below(graph) {
  const bar = graph.detail.nextElementSibling;
  return bar && bar.classList.contains('export') ? bar : graph.detail;
}

// ---- callers and callees ----

// Paths through the function, from it outwards (callers) or inwards (callees), over all stacks.
function treeThrough(graph, known, callers) {
  const { frames } = graph;
  const tree = new Tree(frames, callers, frames.all);
  tree.begin(frames.outermost((name) => frames.functions[name].known === known));
  return tree;
}

function showSandwich(graph, known) {
  let box = graph.box.querySelector('.sandwich');
  if (!box) {
    box = make('div', { className: 'sandwich' });
    below(graph).after(box);
  }
  box.replaceChildren();
  keepState(`around-${graph.svg.id}`, known ?? '');
  if (!known) return;
  const close = make('button', { type: 'button', textContent: 'Close' });
  close.addEventListener('click', () => showSandwich(graph, null));
  box.append(make('h4', { textContent: `Callers and callees of ${known}` }), close);
  for (const [callers, text] of [[true, 'Callers: who calls it, the nearest at the bottom'], [false, 'Callees: what it calls']]) {
    const tree = treeThrough(graph, known, callers);
    const svg = svgNode('svg', { class: `flame ${callers ? 'callers' : 'callees'}`, role: 'img', 'aria-label': `${text} (${known})` });
    box.append(make('p', { className: 'note', textContent: text }), svg);
    graph.paintTree(svg, tree, callers);
    exportPicture(svg, `${callers ? 'Callers' : 'Callees'} of ${known}`);
  }
}

// ---- code ----

function codeTable(heads, rows) {
  const row = (tag, texts, share) => {
    const line = make('tr', {}, ...texts.map((text, i) => {
      const cell = make(tag, { textContent: text });
      if (tag === 'th') cell.scope = 'col';
      else if (i === texts.length - 1) cell.className = 'text';
      return cell;
    }));
    if (share >= 5) line.className = 'hot';
    return line;
  };
  return make('table', {}, make('thead', {}, row('th', heads, 0)),
    make('tbody', {}, ...rows.map(([texts, share]) => row('td', texts, share))));
}

const shareText = (share) => (share ? `${share.toFixed(2)} %` : '');

// Of the function that was clicked, where the page has its code (assay html --source).
function showCode(graph, node) {
  const source = graph.profiles.map((p) => p.sources && p.sources[node.name]).find(Boolean);
  let box = graph.box.querySelector('.code');
  if (!source) {
    if (box) box.remove();
    return;
  }
  if (!box) {
    box = make('div', { className: 'code' });
    below(graph).after(box);
  }
  const parts = source.files.map((file) => make('div', {}, make('p', { className: 'note', textContent: file.found ? file.file : `${file.file}: the source was not found` }),
    codeTable(['Line', 'Share', 'Source'], file.lines.map(([line, share, text]) => [[line, shareText(share), text], share]))));
  if (!source.files.length) parts.push(make('p', { className: 'note', textContent: 'There are no source lines: the program has no debug information.' }));
  const code = source.code.length
    ? codeTable(['Address', 'Share', 'Instruction'], source.code.map(([address, share, text]) => [[address, shareText(share), text], share]))
    : make('p', { className: 'note', textContent: source.missing ?? 'There are no instructions.' });
  const region = make('div', { className: 'scroll' }, ...parts, code);
  region.tabIndex = 0;
  region.setAttribute('role', 'region');
  region.setAttribute('aria-label', `Code of ${node.name}`);
  for (const table of region.querySelectorAll('table')) exportTable(table, `Code of ${node.name}`);
  box.replaceChildren(make('h4', { textContent: `Code of ${node.name}, ${source.samples.toLocaleString('en-US')} ${source.samples === 1 ? 'sample' : 'samples'} of its own` }), region);
}

// ---- start ----

// What is drawn from the data waits until it is looked at: unpacking it takes a moment.
function startTimes(graphs) {
  for (const box of document.querySelectorAll('.when')) {
    box.hidden = false;
    if (chosen.has(`range-${box.dataset.for}`)) showTimes(box, graphs);
    else whenSeen(box, () => showTimes(box, graphs));
  }
}

async function showTimes(box, graphs) {
  const graph = await graphs.get(box.dataset.for)();
  const [profile] = graph.profiles;
  if (timesOf(profile)) {
    const map = new TimeMap(box, graph, profile);
    map.restore();
  }
  const tracks = threadTracks(profile, graph.functions, unitsAcross(box));
  if (tracks) box.append(tracks);
  box.dataset.ready = '1';
}
