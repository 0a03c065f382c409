// SPDX-License-Identifier: MIT
// Tables as CSV, pictures as SVG and PNG, made in the page: nothing is asked for.

function download(name, blob) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const fileName = (text) => text.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 60) || 'assay';

// The text of a cell: whole where it is shortened, without the button and the sign before a verdict.
function plainText(cell) {
  const copy = cell.cloneNode(true);
  for (const button of copy.querySelectorAll('.open')) button.remove();
  for (const head of copy.querySelectorAll('details.long > summary')) head.textContent = head.textContent.slice(0, -1);
  return copy.textContent.trim();
}

const withoutSign = (text) => text.replace(/^[▲▼◆=?✕–](?: ✕)?(?: |$)/, '');

// Numbers stand as they were measured, in the unit that has a column of its own; an interval is two
// columns, and a comparison says whether it is a ratio.  Texts are as they are shown.
function csvOf(table, units) {
  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const heads = [...table.tHead.rows[0].cells];
  const line = (row) => [...row.cells].flatMap((cell, k) => {
    const { range } = heads[k].dataset;
    const isVerdict = ['Verdict', 'Change'].includes(heads[k].textContent);
    const text = cell.dataset.v ?? (isVerdict ? withoutSign(plainText(cell)) : plainText(cell));
    const ends = [cell.dataset.l ?? '', cell.dataset.h ?? ''];
    if (range === 'ratio') return [text, ...ends, text && (cell.dataset.of ?? 'ratio')];
    if (range) return ends;
    return units && heads[k].textContent === 'Metric' ? [text, units.get(text) ?? ''] : [text];
  });
  const names = heads.flatMap((head) => {
    const name = head.textContent;
    if (head.dataset.range) return [...(head.dataset.range === 'ratio' ? [name] : []), `${name}, low`, `${name}, high`, ...(head.dataset.range === 'ratio' ? ['Scale'] : [])];
    return units && name === 'Metric' ? [name, 'Unit'] : [name];
  });
  const own = table.dataset.unit; // of all its figures
  if (own) names.push('Unit');
  const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains('raw') && !row.classList.contains('group') && !row.hidden);
  return `${[names, ...rows.map((row) => (own ? [...line(row), own] : line(row)))].map((fields) => fields.map(quote).join(',')).join('\n')}\n`;
}

const STYLES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'opacity', 'font-size',
  'font-family', 'text-anchor'];

// The picture with its colours in it, so that it looks the same elsewhere.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const to = [copy, ...copy.querySelectorAll('*')];
  [svg, ...svg.querySelectorAll('*')].forEach((from, i) => {
    const style = getComputedStyle(from);
    for (const name of STYLES) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute('class');
    to[i].removeAttribute('tabindex');
  });
  const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', width);
  copy.setAttribute('height', height);
  const back = svgNode('rect', { width, height, fill: getComputedStyle(document.body).backgroundColor });
  copy.prepend(back);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

async function pngOf(svg) {
  const { text, width, height } = standalone(svg);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = make('canvas', { width: 2 * width, height: 2 * height });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
}

function exporter(name, actions) {
  const bar = make('div', { className: 'export' });
  for (const [label, run] of actions) {
    const button = make('button', { type: 'button', textContent: label });
    button.setAttribute('aria-label', `Save ${name} as ${label}`);
    button.addEventListener('click', run);
    bar.append(button);
  }
  return bar;
}

const pageTitle = () => document.querySelector('h1').textContent;

// The buttons below a table.
function exportTable(region, name) {
  const table = region.matches('table') ? region : region.querySelector('table');
  if (!table || !table.tHead) return;
  region.after(exporter(name, [['CSV', async () => {
    await allRows();
    const data = await pageData();
    const units = data?.view ? new Map(data.view.metrics) : null;
    download(`${fileName(`${pageTitle()}-${name}`)}.csv`, new Blob([csvOf(table, units)], { type: 'text/csv' }));
  }]]));
}

// The buttons below a picture.
function exportPicture(svg, name) {
  const file = () => fileName(`${pageTitle()}-${name}`);
  const bar = exporter(name, [
    ['SVG', () => download(`${file()}.svg`, new Blob([standalone(svg).text], { type: 'image/svg+xml' }))],
    ['PNG', async () => download(`${file()}.png`, await pngOf(svg))]]);
  (svg.nextElementSibling && svg.nextElementSibling.classList.contains('detail') ? svg.nextElementSibling : svg).after(bar);
}

function exportTables(root) {
  for (const region of root.querySelectorAll('.scroll')) exportTable(region, region.getAttribute('aria-label') || 'table');
}

function startExport() {
  exportTables(document);
  for (const svg of document.querySelectorAll('figure svg.plot:not(.narrow), svg.flame')) {
    const caption = svg.closest('figure')?.querySelector('figcaption');
    exportPicture(svg, caption ? (caption.querySelector('summary') ?? caption).textContent : svg.getAttribute('aria-label') ?? svg.id);
  }
}
