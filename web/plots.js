// SPDX-License-Identifier: MIT
// Plots: the figures of a point on hover and on focus (arrow keys go from point to point).

function startPlots() {
  for (const svg of document.querySelectorAll('svg.plot')) startPlot(svg);
  restorePoint();
  drawRest();
}

// The point that was clicked or reached with the keyboard stands in the address, as "figure.number".
function restorePoint() {
  const [, id, index] = /^(.+)\.(\d+)$/.exec(chosen.get('point') ?? '') ?? [];
  const figure = id && document.getElementById(id);
  for (const svg of figure ? figure.querySelectorAll('svg.plot') : []) svg.showPoint?.(Number(index));
  if (figure && !chosen.has('to')) figure.scrollIntoView({ block: 'center' });
}

// Pictures outside of the screen are laid out after the page is ready, a few at once.
async function drawRest() {
  const figures = [...document.querySelectorAll('.plots figure')];
  while (figures.length) {
    await idle();
    for (const figure of figures.splice(0, 4)) figure.classList.add('drawn');
  }
}

// One place for the figures of a point; the first picture is there twice, for wide screens and for phones.
function detailOf(svg) {
  const beside = svg.nextElementSibling;
  if (beside && beside.classList.contains('detail')) return beside;
  if (beside && beside.matches('svg.plot')) return detailOf(beside);
  const detail = make('p', { className: 'detail' });
  detail.setAttribute('aria-live', 'polite');
  svg.after(detail);
  return detail;
}

function startPlot(svg) {
  const marks = [...svg.querySelectorAll('.p path, .k, .run')];
  if (!marks.length) return;
  const detail = detailOf(svg);
  svg.setAttribute('tabindex', '0');
  let here = -1;
  const show = (index) => {
    if (here >= 0) marks[here].classList.remove('here');
    here = index;
    if (here < 0) return;
    const mark = marks[here];
    mark.classList.add('here');
    const name = mark.parentElement.dataset.name;
    detail.textContent = (name ? `${name}, ` : '') + mark.querySelector('title').textContent;
  };
  const figure = svg.closest('figure[id]');
  const keep = () => { if (figure) keepState('point', here < 0 ? '' : `${figure.id}.${here}`); };
  svg.showPoint = (index) => { if (index < marks.length) show(index); };
  svg.addEventListener('click', keep);
  svg.addEventListener('pointermove', (event) => {
    let nearest = -1;
    let least = 24;
    marks.forEach((mark, i) => {
      const box = mark.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      const far = inside && mark.tagName === 'g' ? 0 : Math.hypot(event.clientX - (box.left + box.right) / 2, event.clientY - (box.top + box.bottom) / 2);
      if (far < least) {
        least = far;
        nearest = i;
      }
    });
    if (nearest >= 0 && nearest !== here) show(nearest);
  });
  svg.addEventListener('focus', () => { if (here < 0) show(0); });
  svg.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show((here + step + marks.length) % marks.length);
    keep();
  });
}
