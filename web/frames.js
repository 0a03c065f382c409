// SPDX-License-Identifier: MIT
// Frames of profiles as numbers, and the trees that flame graphs are drawn from.

// All frames of one or two profiles, each profile in preorder: those below a frame follow it.
class Frames {
  constructor(profiles, functions) {
    const count = profiles.reduce((sum, profile) => sum + profile.depth.length, 0);
    Object.assign(this, { profiles, functions, count, tops: [] });
    this.name = new Int32Array(count);
    this.parent = new Int32Array(count);
    this.size = new Int32Array(count).fill(1); // with everything below
    this.own = { weight: [0, 1].map(() => new Float64Array(count)), samples: [0, 1].map(() => new Float64Array(count)) };
    this.all = { weight: [0, 1].map(() => new Float64Array(count)), samples: [0, 1].map(() => new Float64Array(count)) };
    let first = 0;
    for (const { depth, name } of profiles) {
      const path = [];
      for (let i = 0; i < depth.length; i++) {
        path[depth[i]] = first + i;
        this.parent[first + i] = depth[i] ? path[depth[i] - 1] : -1;
        this.name[first + i] = name[i];
        if (!depth[i]) this.tops.push(first + i);
      }
      first += depth.length;
    }
    for (let i = count - 1; i >= 0; i--) if (this.parent[i] >= 0) this.size[this.parent[i]] += this.size[i];
  }

  // Every sample, the second profile's on the second side.
  takeAll() {
    this.clear();
    let first = 0;
    this.profiles.forEach((profile, side) => {
      for (let i = 0; i < profile.depth.length; i++) {
        this.own.samples[side][first + i] = profile.samples[i];
        this.own.weight[side][first + i] = profile.weight ? profile.weight[i] : profile.samples[i] * profile.each;
      }
      first += profile.depth.length;
    });
    this.sum();
  }

  // Those of a stretch of time; with `versus` they are the second side, and the rest is the first.
  takeRange({ inside, versus }) {
    this.clear();
    const { node } = this.profiles[0].moments;
    for (let i = 0; i < node.length; i++) {
      if (!inside[i] && !versus) continue;
      const side = versus && inside[i] ? 1 : 0;
      this.own.samples[side][node[i]]++;
      this.own.weight[side][node[i]]++;
    }
    this.sum();
  }

  clear() {
    for (const kind of ['weight', 'samples']) for (const side of [0, 1]) this.own[kind][side].fill(0);
  }

  sum() {
    for (const kind of ['weight', 'samples']) {
      for (const side of [0, 1]) {
        const list = this.all[kind][side];
        list.set(this.own[kind][side]);
        for (let i = this.count - 1; i >= 0; i--) if (this.parent[i] >= 0) list[this.parent[i]] += list[i];
      }
    }
  }

  // The outermost frames for which that holds.
  outermost(holds) {
    const found = [];
    for (let i = 0; i < this.count;) {
      const is = holds(this.name[i]);
      if (is) found.push(i);
      i += is ? this.size[i] : 1;
    }
    return found;
  }

  // The functions on the stack of a frame, each once.
  stack(i) {
    const names = new Set();
    for (let at = i; at >= 0; at = this.parent[at]) names.add(this.name[at]);
    return [...names];
  }
}

// ---- trees, of which only what is looked at is made ----

function newNode(of, parent) {
  return { name: of.name, known: of.known, flags: of.flags, parent, frames: [], at: [], children: null, weight: [0, 0], samples: [0, 0] };
}

// Frames of equal functions are one node.  Downwards, its children are the frames below its own;
// upwards, the callers of each of its frames, as far as `at` has come.
class Tree {
  constructor(frames, upwards, amounts) {
    Object.assign(this, { frames, upwards, amounts, slots: new Map() });
    this.root = newNode({ name: 'all', flags: 0 }, null);
  }

  add(node, frame, at) {
    const of = this.frames.functions[this.frames.name[at]];
    const { weight, samples } = this.amounts;
    if (!weight[0][frame] && !weight[1][frame]) return;
    let child = this.slots.get(of.known);
    if (!child) {
      child = newNode(of, node);
      this.slots.set(of.known, child);
      node.children.push(child);
    }
    child.flags |= of.flags;
    child.frames.push(frame);
    if (this.upwards) child.at.push(at);
    for (const side of [0, 1]) {
      child.weight[side] += weight[side][frame];
      child.samples[side] += samples[side][frame];
    }
  }

  // Gives the root its children: these frames, and its sums.
  begin(list) {
    this.root.children = [];
    for (const frame of list) this.add(this.root, frame, frame);
    this.slots.clear();
    for (const child of this.root.children) {
      for (const side of [0, 1]) {
        this.root.weight[side] += child.weight[side];
        this.root.samples[side] += child.samples[side];
      }
    }
    return this.root;
  }

  children(node) {
    if (node.children) return node.children;
    node.children = [];
    const { parent, size } = this.frames;
    node.frames.forEach((frame, k) => {
      if (this.upwards) {
        const caller = parent[node.at[k]];
        if (caller >= 0) this.add(node, frame, caller);
      } else {
        for (let i = frame + 1; i < frame + size[frame]; i += size[i]) this.add(node, i, i);
      }
    });
    this.slots.clear();
    return node.children;
  }
}

// Samples one after the other: only neighbours are merged.
function orderedTree(frames, profile) {
  const tree = new Tree(frames, false, frames.all);
  const { root } = tree;
  root.children = [];
  let last = [];
  for (const leaf of profile.order) {
    const path = [];
    for (let at = leaf; at >= 0; at = frames.parent[at]) path.unshift(frames.name[at]);
    const now = [];
    let node = root;
    let same = true;
    const count = (one) => { one.weight[0]++; one.samples[0]++; };
    count(root);
    path.forEach((name, k) => {
      same = same && last[k] && last[k].id === name;
      let child = same ? last[k].node : null;
      if (!child) {
        child = newNode(frames.functions[name], node);
        child.children = [];
        node.children.push(child);
      }
      count(child);
      now.push({ id: name, node: child });
      node = child;
    });
    last = now;
  }
  return tree;
}

function hashOf(text) {
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) >>> 0;
  return h;
}
