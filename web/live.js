// SPDX-License-Identifier: MIT
// Pages of `assay serve`: what has changed in the store comes by itself, and the list of experiments
// follows what is typed.  Reports in files have none of this.

const LIVE_PAUSE_MS = 1000;

// The two that were chosen to be compared stay chosen while the list shows others.
const pair = { base: '', new: '' };

function showPair() {
  const form = document.getElementById('pair');
  if (!form) return;
  for (const old of form.querySelectorAll('input[type=hidden]')) old.remove();
  for (const [side, id] of Object.entries(pair)) {
    const choices = [...document.querySelectorAll(`#live input[name=${side}]`)];
    const here = choices.find((input) => input.value === id);
    if (here) here.checked = true;
    else if (id) form.append(make('input', { type: 'hidden', name: side, value: id }));
    for (const input of choices) input.required = !id || Boolean(here);
  }
  form.querySelector('span').textContent = pair.base || pair.new
    ? `Base: ${pair.base || 'choose one'}, new: ${pair.new || 'choose one'}` : 'Choose a base and a new one in the list:';
}

function startPair() {
  const take = (input) => { pair[input.name] = input.value; };
  document.querySelectorAll('#live input:checked').forEach(take); // a browser that goes back keeps them
  document.addEventListener('change', (event) => {
    if (!event.target.matches('#live input[type=radio]')) return;
    take(event.target);
    showPair();
  });
  showPair();
}

// Puts what the server now says into the page, without touching what a reader has chosen.
async function replaceFrom(url, id) {
  const response = await fetch(url);
  if (!response.ok) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById(id);
  const here = document.getElementById(id);
  if (!fresh || !here) return false;
  const places = [...here.querySelectorAll('.scroll')].map((region) => [region.scrollLeft, region.scrollTop]);
  const focused = here.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
  const opened = [...here.querySelectorAll('details')].map((folded) => folded.open);
  here.replaceChildren(...document.importNode(fresh, true).childNodes);
  exportTables(here);
  [...here.querySelectorAll('.scroll')].forEach((region, i) => region.scrollTo(...(places[i] ?? [0, 0])));
  showPair();
  [...here.querySelectorAll('details')].forEach((folded, i) => { folded.open = opened[i] ?? folded.open; });
  if (focused) [...here.querySelectorAll('[aria-label]')].find((e) => e.getAttribute('aria-label') === focused)?.focus();
  return true;
}

function startEvents(live) {
  let due = null;
  let first = true;
  addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); }); // it heard nothing meanwhile
  const source = new EventSource(live.dataset.events);
  source.addEventListener('message', () => {
    if (first) { // what the page shows already
      first = false;
      return;
    }
    due = due ?? setTimeout(async () => {
      due = null;
      await replaceFrom(location.href, 'live');
      live.dataset.updates = Number(live.dataset.updates ?? 0) + 1;
    }, LIVE_PAUSE_MS);
  });
  addEventListener('pagehide', () => source.close());
}

function startSearch(form) {
  const input = form.querySelector('input[name=q]');
  let due = null;
  let asked = 0;
  input.addEventListener('input', () => {
    clearTimeout(due);
    due = setTimeout(async () => {
      const turn = ++asked;
      const url = input.value ? `./?q=${encodeURIComponent(input.value)}` : './';
      const response = await fetch(url);
      if (turn !== asked || !response.ok) return; // more was typed meanwhile
      const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('live');
      const list = document.getElementById('live');
      list.replaceChildren(...document.importNode(fresh, true).childNodes);
      exportTables(list);
      showPair();
      history.replaceState(null, '', url);
    }, 120);
  });
}

// The first screen of the report, without the banners that the page has already.
async function showVerdict(section) {
  const response = await fetch(section.dataset.from);
  if (!response.ok) return;
  const first = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('.first');
  if (!first) return;
  for (const banner of first.querySelectorAll('.banner, .export')) banner.remove();
  section.querySelector('.note').replaceWith(document.importNode(first, true));
}

function startLive() {
  const live = document.getElementById('live');
  if (live) startEvents(live);
  const form = document.querySelector('form[role=search]');
  if (form) startSearch(form);
  if (document.getElementById('pair')) startPair();
  const moved = document.getElementById('moved');
  if (moved) replaceFrom(moved.dataset.from, 'moved-list');
  const verdict = document.getElementById('verdict');
  if (verdict?.dataset.from) showVerdict(verdict);
}
