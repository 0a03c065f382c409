// SPDX-License-Identifier: MIT
// Tables as CSV, pictures as SVG and PNG, made in the page: nothing is asked for.

function download(name, blob) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const fileName = (text) => text.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 60) || 'assay';

// Numbers stand as they were measured, without units; texts as they are shown.
function csvOf(table) {
  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const text = (cell) => (cell.dataset.v !== undefined ? cell.dataset.v
    : cell.textContent.replace(/^[▸▾]/, '').trim());
  const rows = [...table.tHead.rows, ...table.tBodies[0].rows].filter((row) => !row.classList.contains('raw') && !row.classList.contains('group') && !row.hidden);
  return `${rows.map((row) => [...row.cells].map((cell) => quote(text(cell))).join(',')).join('\n')}\n`;
}

const STYLES = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'opacity', 'font-size',
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

function startExport() {
  const title = document.querySelector('h1').textContent;
  for (const region of document.querySelectorAll('.scroll')) {
    const table = region.querySelector('table');
    if (!table || !table.tHead) continue;
    const name = region.getAttribute('aria-label') || 'table';
    region.after(exporter(name, [['CSV', async () => {
      await allRows();
      download(`${fileName(`${title}-${name}`)}.csv`, new Blob([csvOf(table)], { type: 'text/csv' }));
    }]]));
  }
  for (const svg of document.querySelectorAll('figure svg.plot:not(.narrow), svg.flame')) {
    const caption = svg.closest('figure') ? svg.closest('figure').querySelector('figcaption').textContent : svg.id;
    const file = fileName(`${title}-${caption}`);
    const bar = exporter(caption, [
      ['SVG', () => download(`${file}.svg`, new Blob([standalone(svg).text], { type: 'image/svg+xml' }))],
      ['PNG', async () => download(`${file}.png`, await pngOf(svg))]]);
    (svg.nextElementSibling && svg.nextElementSibling.classList.contains('detail') ? svg.nextElementSibling : svg).after(bar);
  }
}
