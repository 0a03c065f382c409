// SPDX-License-Identifier: MIT
// Flame graphs: zoom, search, inverted stacks, order of time, and the difference of two.

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 1200;
const ROW = 17;
const NARROWEST = 1; // a frame that is drawn at all
const NAMELESS = 3; // narrower frames of one kind are one shape

// As wide as it is drawn without scripts; a phone's text would be too small, so there one unit is one pixel.
function unitsAcross(element) {
  const width = element.clientWidth || element.getBoundingClientRect().width;
  return !width || width >= 800 ? WIDTH : Math.max(Math.round(width), 280);
}

class FlameGraph {
  constructor(svg, tools, profiles, data) {
    this.svg = svg;
    this.tools = tools;
    this.profiles = profiles;
    this.functions = data.functions;
    this.frames = new Frames(profiles, data.functions);
    this.frames.takeAll();
    this.strong = data.names.strong_change;
    this.pair = profiles.length === 2;
    this.box = svg.parentElement;
    this.range = null;
    this.options = { invert: false, order: false, width: 'both' };
    this.pattern = null;
    this.detail = make('p', { className: 'detail' });
    this.detail.setAttribute('aria-live', 'polite');
    svg.after(this.detail);
    this.width = unitsAcross(svg);
    this.rebuild();
    addEventListener('resize', () => {
      if (this.width === unitsAcross(svg)) return;
      this.width = unitsAcross(svg);
      this.draw();
    });
  }

  makeTree() {
    if (this.isOrdered()) return orderedTree(this.frames, this.profiles[0]);
    const { own, all, tops } = this.frames;
    const tree = new Tree(this.frames, this.options.invert, this.options.invert ? own : all);
    tree.begin(this.options.invert ? this.frames.name.keys() : tops);
    return tree;
  }

  isOrdered() {
    return this.options.order && !this.range;
  }

  // Shows a stretch of time, alone or against the rest; null: everything.  What is to be said of it.
  setRange(range) {
    let told = '';
    this.range = range;
    this.pair = this.profiles.length === 2 || Boolean(range && range.versus);
    this.marks = null;
    if (range) this.frames.takeRange(range);
    else this.frames.takeAll();
    if (range && range.versus) {
      const stacks = new Map();
      const stackOf = (node) => {
        if (!stacks.has(node)) stacks.set(node, this.frames.stack(node));
        return stacks.get(node);
      };
      const result = judgeRange(Array.from(this.profiles[0].moments.node, stackOf), range.inside, this.functions.length);
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
    this.tree = this.makeTree();
    this.root = this.tree.root;
    this.costs = [0, 1].map((side) => (this.range ? 1 : this.profiles[side]?.cost ?? this.root.weight[side]));
    this.focus = this.root;
    this.here = null;
    this.draw();
  }

  sharesOf(weights) {
    return [0, 1].map((s) => (this.root.weight[s] ? weights[s] / this.root.weight[s] : 0));
  }

  shares(node) {
    return this.sharesOf(node.weight);
  }

  valueOf(weights) {
    const [a, b] = this.sharesOf(weights);
    if (!this.pair) return a;
    if (this.options.width !== 'both') return this.options.width === 'base' ? a : b;
    const [base, now] = this.costs;
    return (a * base + b * now) / (base + now);
  }

  value(node) {
    return this.valueOf(node.weight);
  }

  // The children of a node, the widest first; sorted when they are first looked at.
  sorted(node, tree = this.tree) {
    if (node.sorted) return node.sorted;
    const list = tree.children(node);
    if (list.length < 2) node.sorted = list;
    else node.sorted = list.map((child) => [this.value(child), child]).sort((p, q) => q[0] - p[0]).map(([, child]) => child);
    return node.sorted;
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
    above.forEach((node, depth) => this.boxes.push({ node, depth, x: 0, width: this.width, up: true }));
    this.place(this.tree, this.focus, above.length, this.boxes);
    this.paint();
  }

  // Boxes of a node and all below it that are wide enough to be seen.
  place(tree, top, level, boxes) {
    const whole = this.value(top) || 1;
    const ordered = this.isOrdered() && tree === this.tree;
    const least = ordered ? NARROWEST / 5 : NARROWEST; // in the order of time, every frame is narrow
    const walk = (node, depth, x) => {
      const width = (this.value(node) / whole) * this.width;
      if (width < least) return width;
      if (node.parent) boxes.push({ node, depth, x, width });
      let at = x;
      for (const child of ordered ? node.children : this.sorted(node, tree)) {
        const wide = walk(child, node.parent ? depth + 1 : depth, at);
        if (wide < least && !ordered) break; // those behind are narrower still
        at += wide;
      }
      return width;
    };
    walk(top, level, 0);
  }

  // Rectangles and texts of boxes; `deepest` where the root is at the bottom.
  shapes(boxes, deepest) {
    const parts = [];
    const narrow = new Map();
    for (const box of boxes) {
      const y = (deepest === undefined ? box.depth : deepest - box.depth) * ROW;
      let classes = this.classOf(box.node);
      if (box.up) classes += ' up';
      if (this.pattern && this.pattern.test(box.node.name)) classes += ' hit';
      if (box.width < NAMELESS && box.node !== this.here) {
        narrow.set(classes, `${narrow.get(classes) ?? ''}M${box.x.toFixed(1)} ${y}h${box.width.toFixed(1)}v16h-${box.width.toFixed(1)}z`);
        continue;
      }
      if (box.node === this.here) classes += ' here';
      const rect = svgNode('rect', { x: box.x.toFixed(1), y, width: box.width.toFixed(1), class: classes });
      rect.append(svgNode('title', {}, this.describe(box.node)));
      parts.push(rect);
      if (box.width > 34) {
        const label = this.signOf(box.node) + box.node.name;
        const fits = Math.floor((box.width - 8) / 6.7);
        parts.push(svgNode('text', { x: (box.x + 3).toFixed(1), y: y + 12 },
          label.length > fits ? `${label.slice(0, Math.max(fits - 1, 1))}…` : label));
      }
    }
    for (const [classes, d] of narrow) parts.unshift(svgNode('path', { class: classes, d }));
    return parts;
  }

  show(svg, boxes, upwards) {
    const deepest = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
    svg.setAttribute('viewBox', `0 0 ${this.width} ${(deepest + 1) * ROW + 2}`);
    svg.replaceChildren(...this.shapes(boxes, upwards ? deepest : undefined));
  }

  paint() {
    this.show(this.svg, this.boxes, false);
  }

  // Another tree of the same profile: shares stay those of the whole.
  paintTree(svg, tree, upwards) {
    const boxes = [];
    this.place(tree, tree.root, 0, boxes);
    this.show(svg, boxes, upwards);
  }

  // The box below the pointer.
  boxAt(event) {
    const area = this.svg.getBoundingClientRect();
    const scale = this.width / area.width;
    const x = (event.clientX - area.left) * scale;
    const depth = Math.floor(((event.clientY - area.top) * scale) / ROW);
    return this.boxes.find((b) => b.depth === depth && x >= b.x && x < b.x + b.width);
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
    const share = this.pattern ? this.matching() : 0;
    status.textContent = this.pattern ? `${(100 * share).toFixed(2)} % matches` : '';
    this.paint();
  }

  matching() {
    const { all, functions } = this.frames;
    const hits = functions.map((of) => this.pattern.test(of.name));
    const sum = [0, 0];
    if (this.isOrdered()) {
      const walk = (node) => {
        if (node.parent && this.pattern.test(node.name)) sum[0] += node.weight[0];
        else node.children.forEach(walk);
      };
      walk(this.root);
      return this.valueOf(sum);
    }
    for (const frame of this.frames.outermost((name) => hits[name])) {
      for (const side of [0, 1]) sum[side] += all.weight[side][frame];
    }
    return this.valueOf(sum);
  }

  // The heaviest frame of that name.
  find(known) {
    let best = null;
    const walk = (node) => {
      if (best && this.value(node) <= this.value(best)) return; // and so is all below it
      if (node.parent && node.known === known) best = node;
      else this.sorted(node).forEach(walk);
    };
    walk(this.root);
    return best;
  }

  key(event) {
    const at = this.here || this.focus;
    const siblings = at.parent ? this.sorted(at.parent) : [at];
    const place = siblings.indexOf(at);
    let to = null;
    if (event.key === 'ArrowUp') to = at.parent && at.parent.parent ? at.parent : null;
    else if (event.key === 'ArrowDown') [to] = this.sorted(at);
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

function whenSeen(element, act) {
  const look = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    look.disconnect();
    act();
  }, { rootMargin: '200px' });
  look.observe(element);
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
    const g = await ready();
    const hit = g.boxAt(event);
    if (!hit) return;
    g.say(hit.node);
    g.zoom(hit.node);
  });
  svg.addEventListener('pointermove', (event) => {
    const hit = graph && graph.boxAt(event);
    if (hit) graph.detail.textContent = graph.describe(hit.node);
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
    keepState(`show-${svg.id}`, [g.options.invert && 'invert', g.options.order && 'order', g.options.width !== 'both' && g.options.width].filter(Boolean).join('.'));
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
  if (unitsAcross(svg) < WIDTH) whenSeen(svg, ready); // as drawn without scripts its text is too small there
  restoreFlame(svg, tools, ready);
  return ready;
}

// One of the words that the address has of how the graph is drawn.
function showAs(graph, tools, word) {
  const control = tools.querySelector(['base', 'new'].includes(word) ? '[data-act=width]' : `[data-act="${CSS.escape(word)}"]`);
  if (!control || !['invert', 'order', 'base', 'new'].includes(word)) return;
  if (control.type === 'checkbox') graph.options[word] = control.checked = true;
  else graph.options.width = control.value = word;
}

async function restoreFlame(svg, tools, ready) {
  const [zoom, find, around, show] = ['zoom', 'find', 'around', 'show'].map((key) => chosen.get(`${key}-${svg.id}`));
  if (!zoom && !find && !around && !show) return;
  const graph = await ready();
  for (const word of (show ?? '').split('.')) showAs(graph, tools, word);
  if (show) graph.rebuild();
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
