// SPDX-License-Identifier: MIT
// Flame graphs: zoom, search, inverted stacks, order of time, and the difference of two.

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 1200;
const ROW = 17;

function newNode(of, parent) {
  return { name: of.name, known: of.known, flags: of.flags, parent, children: [], index: new Map(), weight: [0, 0], samples: [0, 0] };
}

const newRoot = () => newNode({ name: 'all', flags: 0 }, null);

function childOf(node, of) {
  let child = node.index.get(of.known);
  if (!child) {
    child = newNode(of, node);
    node.index.set(of.known, child);
    node.children.push(child);
  }
  child.flags |= of.flags;
  return child;
}

// Calls for every stack of a profile with its path of name numbers, own samples and weight.
function eachStack(profile, fn) {
  const path = [];
  profile.depth.forEach((depth, i) => {
    path.length = depth;
    path.push(profile.name[i]);
    const samples = profile.samples[i];
    if (samples) fn(path, samples, profile.weight ? profile.weight[i] : samples * profile.each, i);
  });
}

function addStack(root, functions, path, samples, weight, side, invert) {
  let node = root;
  node.weight[side] += weight;
  node.samples[side] += samples;
  for (let k = 0; k < path.length; k++) {
    node = childOf(node, functions[path[invert ? path.length - 1 - k : k]]);
    node.weight[side] += weight;
    node.samples[side] += samples;
  }
}

// The names on the stack of each node, each once.
function stacksOf(profile) {
  const path = [];
  return profile.depth.map((depth, i) => {
    path.length = depth;
    path.push(profile.name[i]);
    return [...new Set(path)];
  });
}

// Samples one after the other: only neighbours are merged.
function orderedTree(profile, functions) {
  const root = newRoot();
  const paths = new Map();
  const path = [];
  profile.depth.forEach((depth, i) => {
    path.length = depth;
    path.push(profile.name[i]);
    paths.set(i, path.slice());
  });
  let last = [];
  for (const leaf of profile.order) {
    let node = root;
    let same = true;
    const now = [];
    root.weight[0]++;
    root.samples[0]++;
    paths.get(leaf).forEach((name, k) => {
      same = same && last[k] && last[k].id === name;
      let child = same ? last[k].node : null;
      if (!child) {
        child = newNode(functions[name], node);
        node.children.push(child);
      }
      child.weight[0]++;
      child.samples[0]++;
      now.push({ id: name, node: child });
      node = child;
    });
    last = now;
  }
  return root;
}

// The children of a node, the widest first; sorted when they are first looked at.
function sortedChildren(node, valueOf) {
  if (!node.sorted) node.sorted = node.children.length > 1 ? [...node.children].sort((p, q) => valueOf(q) - valueOf(p)) : node.children;
  return node.sorted;
}

function hashOf(text) {
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) >>> 0;
  return h;
}

class FlameGraph {
  constructor(svg, tools, profiles, data) {
    this.svg = svg;
    this.tools = tools;
    this.profiles = profiles;
    this.functions = data.functions;
    this.strong = data.names.strong_change;
    this.pair = profiles.length === 2;
    this.box = svg.parentElement;
    this.range = null;
    this.options = { invert: false, order: false, width: 'both' };
    this.pattern = null;
    this.detail = make('p', { className: 'detail' });
    this.detail.setAttribute('aria-live', 'polite');
    svg.after(this.detail);
    this.rebuild();
  }

  // Calls for every stack that is shown: all of them, or those of a stretch of time.
  eachShown(fn) {
    if (!this.range) {
      this.profiles.forEach((profile, side) => eachStack(profile, (path, samples, weight) => fn(path, samples, weight, side)));
      return;
    }
    const [profile] = this.profiles;
    const counts = [new Map(), new Map()];
    profile.moments.node.forEach((node, i) => {
      const side = this.range.inside[i] ? 1 : 0;
      counts[side].set(node, (counts[side].get(node) ?? 0) + 1);
    });
    const path = [];
    profile.depth.forEach((depth, i) => {
      path.length = depth;
      path.push(profile.name[i]);
      for (const side of this.range.versus ? [0, 1] : [1]) {
        const samples = counts[side].get(i);
        if (samples) fn(path, samples, samples, this.range.versus ? side : 0);
      }
    });
  }

  tree() {
    if (this.options.order && !this.range) return orderedTree(this.profiles[0], this.functions);
    const root = newRoot();
    this.eachShown((path, samples, weight, side) => addStack(root, this.functions, path, samples, weight, side, this.options.invert));
    return root;
  }

  // Shows a stretch of time, alone or against the rest; null: everything.  What is to be said of it.
  setRange(range) {
    let told = '';
    this.range = range;
    this.pair = this.profiles.length === 2 || Boolean(range && range.versus);
    this.marks = null;
    if (range && range.versus) {
      const [profile] = this.profiles;
      const stacks = stacksOf(profile);
      const result = judgeRange(profile.moments.node.map((node) => stacks[node]), range.inside, this.functions.length);
      this.marks = new Map();
      result.marks.forEach((mark, i) => { if (mark) this.marks.set(this.functions[i].known, mark); });
      told = result.tested
        ? `Red: a larger share in this time than in the rest, beyond chance; green: a smaller one (${this.marks.size} of ${result.tested} functions).`
        : 'There are too few samples to tell what differs.';
    }
    this.rebuild();
    return told;
  }

  rebuild() {
    this.root = this.tree();
    this.costs = [0, 1].map((side) => (this.range ? 1 : this.profiles[side]?.cost ?? this.root.weight[side]));
    this.focus = this.root;
    this.here = null;
    this.draw();
  }

  shares(node) {
    return [0, 1].map((s) => (this.root.weight[s] ? node.weight[s] / this.root.weight[s] : 0));
  }

  value(node) {
    const [a, b] = this.shares(node);
    if (!this.pair) return a;
    if (this.options.width !== 'both') return this.options.width === 'base' ? a : b;
    const [base, now] = this.costs;
    return (a * base + b * now) / (base + now);
  }

  // 1: costs more, -1: less, for certain and on this path; 0: grey.  The test is that of the rows.
  change(node) {
    if (this.marks) return this.marks.get(node.known) ?? 0;
    const [base, now] = this.shares(node).map((share, side) => share * this.costs[side]);
    return node.flags & MORE && now > base ? 1 : node.flags & LESS && now < base ? -1 : 0;
  }

  classOf(node) {
    if (!this.pair) return node.flags & KERNEL ? 'fk' : `f${hashOf(node.name) % 3}`;
    const way = this.change(node);
    if (!way) return 'fn';
    const [base, now] = this.shares(node).map((share, side) => share * this.costs[side]);
    return (way > 0 ? 'fu' : 'fd') + (Math.abs(now - base) > this.strong * Math.max(base, now) ? 2 : 1);
  }

  signOf(node) {
    if (!this.pair) return node.flags & KERNEL ? '[k] ' : '';
    return ['− ', '', '+ '][this.change(node) + 1];
  }

  describe(node) {
    const [a, b] = this.shares(node);
    if (!this.pair) return `${node.name}: ${(100 * a).toFixed(2)} %, ${node.samples[0].toLocaleString('en-US')} ${node.samples[0] === 1 ? 'sample' : 'samples'}`;
    if (this.range) {
      const words = ['a smaller share', 'could be chance', 'a larger share'][this.change(node) + 1];
      return `${node.name}: ${(100 * a).toFixed(2)} % in the rest, ${(100 * b).toFixed(2)} % in this time (${node.samples[0]} and ${node.samples[1]} samples; ${words})`;
    }
    const sure = ['costs less', 'could be chance, or is below the resolution', 'costs more'][this.change(node) + 1];
    return `${node.name}: ${(100 * a).toFixed(2)} → ${(100 * b).toFixed(2)} % (${node.samples[0]} and ${node.samples[1]} samples; ${sure})`;
  }

  draw() {
    this.boxes = [];
    const above = [];
    for (let node = this.focus.parent; node && node.parent; node = node.parent) above.unshift(node);
    above.forEach((node, depth) => this.boxes.push({ node, depth, x: 0, width: WIDTH, up: true }));
    this.place(this.focus, above.length, this.boxes);
    this.paint();
  }

  // Boxes of a node and all below it that are wide enough to be seen.
  place(top, level, boxes) {
    const whole = this.value(top) || 1;
    const valueOf = (node) => this.value(node);
    const walk = (node, depth, x) => {
      const width = (this.value(node) / whole) * WIDTH;
      if (width < 0.5) return width;
      if (node.parent) boxes.push({ node, depth, x, width });
      let at = x;
      const list = this.options.order && !this.range ? node.children : sortedChildren(node, valueOf);
      for (const child of list) {
        const wide = walk(child, node.parent ? depth + 1 : depth, at);
        if (wide < 0.5 && list === node.sorted) break; // those behind are narrower still
        at += wide;
      }
      return width;
    };
    walk(top, level, 0);
  }

  // Rectangles and texts of boxes; `deepest` where the root is at the bottom.
  shapes(boxes, deepest) {
    const matches = (node) => this.pattern && this.pattern.test(node.name);
    const parts = [];
    for (const box of boxes) {
      const y = (deepest === undefined ? box.depth : deepest - box.depth) * ROW;
      const rect = document.createElementNS(SVG, 'rect');
      rect.setAttribute('x', box.x.toFixed(1));
      rect.setAttribute('y', y);
      rect.setAttribute('width', Math.max(box.width, 0.5).toFixed(1));
      let classes = this.classOf(box.node);
      if (box.up) classes += ' up';
      if (matches(box.node)) classes += ' hit';
      if (box.node === this.here) classes += ' here';
      rect.setAttribute('class', classes);
      const title = document.createElementNS(SVG, 'title');
      title.textContent = this.describe(box.node);
      rect.append(title);
      rect.box = box;
      parts.push(rect);
      if (box.width > 34) {
        const text = document.createElementNS(SVG, 'text');
        text.setAttribute('x', (box.x + 3).toFixed(1));
        text.setAttribute('y', y + 12);
        const label = this.signOf(box.node) + box.node.name;
        const fits = Math.floor((box.width - 8) / 6.7);
        text.textContent = label.length > fits ? `${label.slice(0, Math.max(fits - 1, 1))}…` : label;
        parts.push(text);
      }
    }
    return parts;
  }

  paint() {
    const deepest = this.boxes.reduce((most, box) => Math.max(most, box.depth), 0);
    this.svg.setAttribute('viewBox', `0 0 ${WIDTH} ${(deepest + 1) * ROW + 2}`);
    this.svg.replaceChildren(...this.shapes(this.boxes));
  }

  // Another tree of the same profile: shares stay those of the whole.
  paintTree(svg, root, upwards) {
    const boxes = [];
    this.place(root, 0, boxes);
    const deepest = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
    svg.setAttribute('viewBox', `0 0 ${WIDTH} ${(deepest + 1) * ROW + 2}`);
    svg.replaceChildren(...this.shapes(boxes, upwards ? deepest : undefined));
  }

  zoom(node) {
    this.focus = node;
    this.draw();
    keepState(`zoom-${this.svg.id}`, node.parent ? node.known : '');
  }

  say(node) {
    this.here = node;
    this.detail.textContent = this.describe(node);
    showCode(this, node);
  }

  // The share that matches: frames within a matching frame are not counted again.
  search(text) {
    const status = this.tools.querySelector('.match');
    keepState(`find-${this.svg.id}`, text);
    try {
      this.pattern = text ? new RegExp(text) : null;
    } catch {
      this.pattern = null;
      status.textContent = 'not a regular expression';
      this.paint();
      return;
    }
    let share = 0;
    const walk = (node) => {
      if (node.parent && this.pattern.test(node.name)) share += this.value(node);
      else node.children.forEach(walk);
    };
    if (this.pattern) walk(this.root);
    status.textContent = this.pattern ? `${(100 * share).toFixed(2)} % matches` : '';
    this.paint();
  }

  // The heaviest frame of that name.
  find(known) {
    let best = null;
    const walk = (node) => {
      if (node.known === known && (!best || this.value(node) > this.value(best))) best = node;
      node.children.forEach(walk);
    };
    walk(this.root);
    return best;
  }

  key(event) {
    const at = this.here || this.focus;
    const valueOf = (node) => this.value(node);
    const siblings = at.parent ? sortedChildren(at.parent, valueOf) : [at];
    const place = siblings.indexOf(at);
    let to = null;
    if (event.key === 'ArrowUp') to = at.parent && at.parent.parent ? at.parent : null;
    else if (event.key === 'ArrowDown') [to] = sortedChildren(at, valueOf);
    else if (event.key === 'ArrowLeft') to = siblings[place - 1];
    else if (event.key === 'ArrowRight') to = siblings[place + 1];
    else if (event.key === 'Enter') this.zoom(at);
    else if (event.key === 'Escape') this.zoom(this.root);
    else return;
    event.preventDefault();
    if (to) {
      this.say(to);
      this.paint();
    }
  }
}

function startFlame(tools) {
  const svg = document.getElementById(tools.dataset.for);
  let graph = null;
  async function ready() {
    if (graph) return graph;
    const data = await pageData();
    const index = tools.dataset.for === 'flame-diff' ? null : Number(tools.dataset.for.slice(6));
    graph = graph || new FlameGraph(svg, tools, index === null ? data.profiles.slice(0, 2) : [data.profiles[index]], data);
    return graph;
  }
  tools.hidden = false;
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'application');
  svg.setAttribute('aria-roledescription', 'flame graph: arrow keys move, Enter zooms in, Escape shows everything');
  svg.addEventListener('click', async (event) => {
    const box = svg.getBoundingClientRect();
    const g = await ready();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const depth = Math.floor((((event.clientY - box.top) / box.width) * WIDTH) / ROW);
    const hit = g.boxes.find((b) => b.depth === depth && x >= b.x && x < b.x + b.width);
    if (!hit) return;
    g.say(hit.node);
    g.zoom(hit.node);
  });
  svg.addEventListener('pointermove', (event) => {
    if (graph && event.target.box) graph.detail.textContent = graph.describe(event.target.box.node);
  });
  svg.addEventListener('pointerenter', ready);
  svg.addEventListener('keydown', (event) => {
    if (graph) graph.key(event);
    else ready();
  });
  svg.addEventListener('focus', ready);
  tools.addEventListener('input', async (event) => {
    const g = await ready();
    const action = event.target.dataset.act;
    if (action === 'search') {
      g.search(event.target.value);
      return;
    }
    if (action === 'width') g.options.width = event.target.value;
    else g.options[action] = event.target.checked;
    g.rebuild();
    if (g.pattern) g.search(tools.querySelector('[data-act=search]').value);
  });
  tools.querySelector('[data-act=around]').addEventListener('click', async () => {
    const g = await ready();
    const node = g.here && g.here.parent ? g.here : g.focus;
    if (node.parent) showSandwich(g, node.known);
    else g.detail.textContent = 'Click a function first, then its callers and callees are shown.';
  });
  tools.querySelector('[data-act=reset]').addEventListener('click', async () => {
    const g = await ready();
    g.zoom(g.root);
  });
  restoreFlame(svg, tools, ready);
  return ready;
}

async function restoreFlame(svg, tools, ready) {
  const [zoom, find, around] = ['zoom', 'find', 'around'].map((key) => chosen.get(`${key}-${svg.id}`));
  if (!zoom && !find && !around) return;
  const graph = await ready();
  if (around) showSandwich(graph, around);
  const node = zoom && graph.find(zoom);
  if (node) graph.zoom(node);
  if (find) {
    tools.querySelector('[data-act=search]').value = find;
    graph.search(find);
  }
}

function startFlames() {
  const graphs = new Map();
  for (const tools of document.querySelectorAll('.flame-tools')) graphs.set(tools.dataset.for, startFlame(tools));
  startTimes(graphs);
  // A row leads to its frame: by a node of the profile, or by the name that both sides know.
  for (const link of document.querySelectorAll('a[data-n], a[data-known]')) {
    link.addEventListener('click', async () => {
      const graph = await graphs.get(link.getAttribute('href').slice(1))();
      const { n, known } = link.dataset;
      const node = graph.find(n ? graph.functions[graph.profiles[0].name[n]].known : known);
      if (!node) return;
      graph.say(node);
      graph.zoom(node);
      graph.svg.focus();
    });
  }
}
