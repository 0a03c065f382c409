// SPDX-License-Identifier: MIT
// The table: sorting, filter, rows of noise on demand, and every raw run of a row.

// By kind of verdict: class, sign and word, as in the rows that are there from the start.
const KINDS = [['better', '▲', 'better'], ['worse', '▼', 'worse'], ['different', '◆', 'different'],
  ['same', '=', 'same'], ['unsure', '?', 'cannot tell']];

// By what a row is sorted: verdicts by their kind and how far the row moved, intervals by their lower ends, all
// else by its number or its text; null where there is nothing.
function sortKey(row, column) {
  const cell = row.cells[column];
  if (column === 2) {
    const rank = row.classList.contains('lost') ? -1 : KINDS.findIndex(([kind]) => cell.classList.contains(kind));
    const { v, of } = row.cells[3].dataset;
    const far = of ? Math.abs(v) : Math.abs(Math.log(v));
    return rank < 0 ? null : rank + (Number.isFinite(far) ? 1 / (2 + far) : 0.5);
  }
  const number = cell.dataset.v ?? cell.dataset.l;
  return number !== undefined ? Number(number) : cell.textContent.replace(/^[▸▾–]/, '') || null;
}

// Resolves when every row is in the table, also those of a long one that come later.
let allRows = async () => {};
const ROWS_AT_ONCE = 60;

function startTable() {
  const table = document.getElementById('rows');
  if (!table) return;
  const body = table.tBodies[0];
  const filter = document.getElementById('filter');
  const noise = document.getElementById('noise');
  const count = document.getElementById('table-count');
  const group = document.getElementById('group');
  let hasNoise = false;
  document.getElementById('table-tools').hidden = false;

  // The buttons stand in the page already, so that nothing moves when the script comes.
  function nameOpener(row) {
    const button = row.querySelector('.open');
    if (!button) return; // no run of it succeeded
    button.setAttribute('aria-label', `Every run of ${row.cells[0].textContent.slice(1)}`);
    button.setAttribute('aria-expanded', 'false');
  }

  // A long table stands in the page with its first rows only, which are quick to lay out.  The others
  // come when the browser has time, a few at once, or all together when they are asked for.
  let hurried = false;
  let pending = [];
  let rest = null;

  function addSome() {
    const some = pending.splice(0, hurried ? pending.length : ROWS_AT_ONCE);
    some.forEach(nameOpener);
    body.insertBefore(fragmentOf(some), body.querySelector('tr.lost'));
    apply();
    if (!pending.length) document.getElementById('later')?.remove();
  }

  async function addRest() {
    const note = document.getElementById('later');
    const runs = document.getElementById('later-runs');
    if (!note && !runs) return;
    if (!hurried) await idle();
    const { later, later_runs: laterRuns } = (await pageData()).view;
    if (runs) runs.closest('details').querySelector('tbody').append(...rowsOf(laterRuns));
    runs?.remove();
    pending = rowsOf(later ?? '');
    while (pending.length) {
      addSome();
      if (pending.length) await idle();
    }
  }

  allRows = (now = true) => {
    hurried = hurried || now;
    rest = rest ?? addRest();
    return rest;
  };
  addEventListener('beforeprint', () => {
    hurried = true;
    if (pending.length) addSome();
  });

  // Rows under a heading for each value of a factor; within it they keep their order.
  async function groupBy(factor) {
    keepState('group', factor);
    await allRows();
    for (const old of body.querySelectorAll('tr.group')) old.remove();
    if (!factor) return;
    const data = await pageData();
    const groups = new Map();
    for (const row of [...body.rows]) {
      const { set, cell } = row.dataset.r === undefined ? {} : cellOf(data, data.view.rows[row.dataset.r]);
      const raw = row.classList.contains('raw') ? row.previousElementSibling : null;
      if (raw) continue; // it comes with the row before it
      const value = set ? (set.factors.includes(factor) ? cell.levels[set.factors.indexOf(factor)] : '') : 'without values';
      if (!groups.has(value)) groups.set(value, []);
      groups.get(value).push(row);
      const next = row.nextElementSibling;
      if (next && next.classList.contains('raw')) groups.get(value).push(next);
    }
    const values = [...groups.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
    for (const value of values) {
      const head = make('th', { textContent: value === 'without values' ? value : `${factor}=${value}`, colSpan: 8 });
      head.scope = 'colgroup';
      body.append(make('tr', { className: 'group' }, head), ...groups.get(value));
    }
    hideEmptyGroups();
  }

  function hideEmptyGroups() {
    for (const head of body.querySelectorAll('tr.group')) {
      let shown = false;
      for (let row = head.nextElementSibling; row && !row.classList.contains('group'); row = row.nextElementSibling) shown = shown || !row.hidden;
      head.hidden = !shown;
    }
  }

  function keepOpen() {
    keepState('open', [...body.querySelectorAll('tr.raw')].map((raw) => raw.previousElementSibling.dataset.r).join('.'));
  }

  async function toggle(row, button) {
    const next = row.nextElementSibling;
    if (next && next.classList.contains('raw')) {
      next.remove();
      button.textContent = '▸';
      button.setAttribute('aria-expanded', 'false');
      keepOpen();
      return;
    }
    button.textContent = '▾';
    button.setAttribute('aria-expanded', 'true');
    const data = await pageData();
    const raw = make('tr', { className: 'raw' });
    const r = data.view.rows[row.dataset.r];
    const runs = rawRuns(data, r);
    const cell = make('td', { colSpan: 8 }, runDots(data, r), runs);
    exportTable(runs, `Runs of ${labelOf(data, r)} ${data.view.metrics[r[0]][0]}`);
    raw.append(cell);
    row.after(raw);
    keepOpen();
  }

  function apply() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      if (row.classList.contains('raw') || row.classList.contains('group')) continue;
      const text = words.length ? row.textContent.toLowerCase() : '';
      row.hidden = !words.every((word) => text.includes(word)) ||
        (noise.checked && row.dataset.noise === '1');
      const next = row.nextElementSibling;
      if (next && next.classList.contains('raw')) next.hidden = row.hidden;
      shown += !row.hidden;
    }
    keepState('q', filter.value);
    keepState('all', noise.checked ? '' : '1');
    hideEmptyGroups();
    count.textContent = shown === 1 ? '1 row' : `${shown} rows`;
  }

  async function addNoise() {
    if (hasNoise) return;
    hasNoise = true;
    await allRows();
    const data = await pageData();
    const there = new Set([...body.rows].map((row) => row.dataset.r));
    data.view.rows.forEach((r, index) => {
      if (there.has(String(index)) || !r[3]) return;
      const row = noiseRow(data, r);
      row.dataset.r = index;
      row.dataset.noise = '1';
      body.append(row);
      nameOpener(row);
    });
  }

  async function sortBy(column, heading) {
    await allRows();
    const down = heading.getAttribute('aria-sort') === 'ascending';
    for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    for (const raw of [...body.querySelectorAll('tr.raw')]) raw.previousElementSibling.querySelector('.open').click();
    for (const old of body.querySelectorAll('tr.group')) old.remove();
    const rows = [...body.rows].map((row) => [sortKey(row, column), row]);
    const way = down ? -1 : 1;
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what has no value is last, either way
      return way * (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true }));
    });
    body.append(...rows.map(([, row]) => row));
    if (group && group.value) await groupBy(group.value);
    keepState('sort', `${column}${down ? 'd' : 'a'}`);
  }

  [...body.rows].forEach(nameOpener);
  body.addEventListener('click', (event) => {
    const button = event.target.closest('.open');
    if (button) toggle(button.closest('tr'), button);
  });
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = make('button', { type: 'button', textContent: heading.textContent });
    heading.dataset.name = heading.textContent; // on paper: a button is not repeated on the next page
    heading.replaceChildren(button);
    button.addEventListener('click', () => sortBy(column, heading));
  });
  filter.addEventListener('input', async () => {
    await allRows();
    apply();
  });
  noise.addEventListener('change', async () => {
    if (!noise.checked) await addNoise();
    if (group && group.value) await groupBy(group.value);
    apply();
  });
  if (group) group.addEventListener('change', () => groupBy(group.value));

  // What the address asks for.
  async function restore() {
    const [all, sort, open] = ['all', 'sort', 'open'].map((key) => chosen.get(key) ?? '');
    filter.value = chosen.get('q') ?? '';
    noise.checked = !all;
    apply();
    if ([...chosen].length) await allRows();
    if (all) await addNoise();
    apply();
    const heading = table.tHead.rows[0].cells[parseInt(sort, 10)];
    if (heading) {
      if (sort.endsWith('d')) heading.setAttribute('aria-sort', 'ascending');
      await sortBy(heading.cellIndex, heading);
    }
    const factor = chosen.get('group') ?? '';
    if (group && factor && [...group.options].some((option) => option.value === factor)) {
      group.value = factor;
      await groupBy(factor);
    }
    for (const number of open.split('.').filter((text) => /^\d+$/.test(text))) {
      const row = body.querySelector(`tr[data-r="${number}"]`);
      if (row) await toggle(row, row.querySelector('.open'));
    }
  }
  restore();
  allRows(false);
}

// The time that is left when the page has been drawn; not every browser tells.
function idle() {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) requestIdleCallback(() => resolve(), { timeout: 500 });
    else setTimeout(resolve, 30);
  });
}

// Rows as the page's data has them: what would stand in the page if there were fewer of them.
function rowsOf(text) {
  const template = make('template', { innerHTML: text });
  return [...template.content.children];
}

function fragmentOf(nodes) {
  const fragment = document.createDocumentFragment();
  fragment.append(...nodes);
  return fragment;
}

function median(values) {
  const sorted = values.filter((v) => v !== null).sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Values of a cell and metric of the view, with their rounds.
function valuesOf(data, metric, cell) {
  const first = data.experiments[0];
  const isNew = data.view.joint && cell >= first.cells.length;
  const set = data.experiments[isNew ? 1 : 0];
  const at = isNew ? cell - first.cells.length : cell;
  const name = data.view.metrics[metric][0];
  const index = set.metrics.findIndex((m) => m[0] === name);
  const source = set.cells[at];
  const values = index < 0 ? [] : source.values[index];
  const disturbed = new Set();
  const failed = new Set();
  set.runs.cell.forEach((c, i) => {
    if (c === at && set.runs.disturbed[i]) disturbed.add(set.runs.round[i]);
    if (c === at && set.runs.status[i]) failed.add(set.runs.round[i]);
  });
  const list = source.rounds.map((round, i) => ({ round, value: values[i] ?? null, disturbed: disturbed.has(round) }));
  list.failed = [...failed].filter((round) => !source.rounds.includes(round));
  return list;
}

function noiseRow(data, r) {
  const [name, unit] = data.view.metrics[r[0]];
  const values = valuesOf(data, r[0], r[1]).map((v) => v.value);
  const base = r[2] >= 0 ? valuesOf(data, r[0], r[2]).map((v) => v.value) : [];
  const number = (list) => {
    const cell = make('td', {});
    if (!list.length) return cell;
    cell.dataset.v = median(list);
    cell.textContent = measured(median(list), unit);
    return cell;
  };
  const [kind, isRatio, estimate, low, high] = r.slice(4);
  const verdict = make('td', { textContent: kind < 0 ? '–' : KINDS[kind].slice(1).join(' ') });
  if (kind >= 0) verdict.className = KINDS[kind][0];
  const amount = (x) => (isRatio ? x.toPrecision(4) : measured(x, unit));
  let ratio = kind < 0 || estimate === null ? '' : amount(estimate) + (isRatio ? '×' : '');
  if (ratio && low !== null && high !== null) ratio += ` [${amount(low)}, ${amount(high)}]`;
  const change = make('td', { textContent: ratio });
  if (ratio) change.dataset.v = estimate;
  if (ratio && !isRatio) change.dataset.of = 'difference';
  if (ratio && low !== null && high !== null) Object.assign(change.dataset, { l: low, h: high });
  const head = make('th', {}, make('button', { type: 'button', className: 'open', textContent: '▸' }), labelOf(data, r));
  head.scope = 'row';
  return make('tr', {}, head, make('td', { textContent: name }), verdict, change, number(base),
    number(values), make('td', {}), make('td', { textContent: values.filter((v) => v !== null).length }));
}

// The cell of a row, and the experiment it belongs to.
function cellOf(data, r) {
  const [first] = data.experiments;
  const set = data.view.joint ? data.experiments[1] : first;
  return { set, cell: data.view.joint ? set.cells[r[1] - first.cells.length] : set.cells[r[1]] };
}

// What the row is about: the cell, or what the pair of cells has in common.
function labelOf(data, r) {
  const [first] = data.experiments;
  const { set, cell } = cellOf(data, r);
  if (r[2] < 0 || data.view.joint || !data.base) return cell.label;
  const base = first.cells[r[2]];
  return set.factors.map((f, i) => [f, i]).filter(([, i]) => cell.levels[i] === base.levels[i])
    .map(([f, i]) => `${f}=${cell.levels[i]}`).join(' ') || 'everything';
}

function svgNode(name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Every run by its round: a drift is a slope.  Disturbed runs are rings, failed ones crosses.
function runDots(data, r) {
  const [name, unit] = data.view.metrics[r[0]];
  const values = valuesOf(data, r[0], r[1]);
  const base = r[2] >= 0 ? valuesOf(data, r[0], r[2]) : [];
  const all = [...values, ...base].map((v) => v.value).filter((v) => v !== null);
  const rounds = [...values, ...base].map((v) => v.round).concat(values.failed, base.failed ?? []);
  if (!all.length) return make('p', { className: 'note', textContent: 'There are no values.' });
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const [first, last] = [Math.min(...rounds), Math.max(...rounds)];
  const right = innerWidth < 700 ? 310 : 590; // as wide as it is shown, so that its text is as large as the page's
  const x = (round) => 90 + (last > first ? ((right - 90) * (round - first)) / (last - first) : (right - 90) / 2);
  const y = (value) => 116 - (high > low ? (96 * (value - low)) / (high - low) : 48);
  const svg = svgNode('svg', { viewBox: `0 0 ${right + 24} 150`, role: 'img' });
  svg.append(svgNode('title', {}, `${name} of every run, by round: from ${measured(low, unit)} to ${measured(high, unit)}`));
  for (const v of high > low ? [low, high] : [low]) {
    svg.append(svgNode('path', { class: 'l', d: `M90 ${y(v)}H${right}`, 'stroke-dasharray': '2 3' }),
      svgNode('text', { x: 84, y: y(v) + 4, 'text-anchor': 'end' }, measured(v, unit)));
  }
  const put = (shape, attributes, words) => {
    const mark = svgNode(shape, { ...attributes, class: `run ${attributes.class}` });
    mark.append(svgNode('title', {}, words));
    svg.append(mark);
  };
  for (const v of base) {
    if (v.value === null) continue;
    put('path', { class: v.disturbed ? 'o' : 'y', d: `M${x(v.round) - 2.5} ${y(v.value) - 2.5}h5v5h-5z` },
      `round ${v.round}, base: ${measured(v.value, unit)}${v.disturbed ? ', disturbed' : ''}`);
  }
  for (const v of values) {
    if (v.value === null) continue;
    put('circle', { class: v.disturbed ? 'o' : 'v', cx: x(v.round), cy: y(v.value), r: 3.4 },
      `round ${v.round}: ${measured(v.value, unit)}${v.disturbed ? ', disturbed' : ''}`);
  }
  const failed = [...values.failed.map((round) => [round, '']), ...(base.failed ?? []).map((round) => [round, ', base'])];
  for (const [round, side] of failed) put('path', { class: 'x', d: `M${x(round) - 4} 6l8 8m0 -8l-8 8` }, `round ${round}${side}: failed`);
  svg.append(svgNode('text', { x: x(first), y: 140, 'text-anchor': 'middle' }, `round ${first}`));
  if (last > first) svg.append(svgNode('text', { x: x(last), y: 140, 'text-anchor': 'end' }, `round ${last}`));
  const words = ['● run', ...(base.length ? ['■ run of the base'] : []),
    ...([...values, ...base].some((v) => v.disturbed) ? ['hollow: disturbed'] : []), ...(failed.length ? ['✕ failed run'] : [])];
  const box = make('div', { className: 'dots' }, svg, make('p', { className: 'note', textContent: words.join(', ') }));
  startPlot(svg);
  exportPicture(svg, `${labelOf(data, r)} ${name}`);
  return box;
}

// Every run of both sides; those of two experiments stand beside each other only in their order.
function rawRuns(data, r) {
  const unit = data.view.metrics[r[0]][1];
  const values = valuesOf(data, r[0], r[1]);
  const base = r[2] >= 0 ? valuesOf(data, r[0], r[2]) : null;
  const paired = base && !data.view.joint;
  const head = ['Round', 'Value'];
  if (base) head.push(paired ? 'Base in the same round' : 'Base');
  head.push('Disturbed');
  const row = (tag, texts) => make('tr', {}, ...texts.map((text) => {
    const isRun = typeof text === 'object' && text !== null;
    const cell = make(tag, { textContent: isRun ? measured(text.value, unit) : text ?? '-' });
    if (isRun && text.value !== null) cell.dataset.v = text.value;
    if (tag === 'th') cell.scope = 'col';
    return cell;
  }));
  const baseOf = (round, i) => (base ? [(paired ? base.find((b) => b.round === round) : base[i]) ?? null] : []);
  const all = [...values, ...values.failed.map((round) => ({ round, isFailed: true }))];
  all.sort((a, b) => a.round - b.round);
  while (base && !paired && all.length < base.length) all.push({ round: '' });
  const table = make('table', {}, make('thead', {}, row('th', head)), make('tbody', {},
    ...all.map((v, i) => row('td', [v.round, v.isFailed ? 'failed' : v.value === undefined ? null : v,
      ...baseOf(v.round, i), v.disturbed ? 'yes' : '']))));
  table.dataset.unit = unit;
  return table;
}
