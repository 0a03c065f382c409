// SPDX-License-Identifier: MIT
// Pages of `assay serve`: what has changed in the store comes by itself, and the list of experiments
// follows what is typed.  Reports in files have none of this.

const LIVE_PAUSE_MS = 1000;

// Puts what the server now says into the page, without touching what a reader has chosen.
async function replaceFrom(url, id) {
  const response = await fetch(url);
  if (!response.ok) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById(id);
  const here = document.getElementById(id);
  if (!fresh || !here) return false;
  const picked = [...here.querySelectorAll('input:checked')].map((input) => [input.name, input.value]);
  const focused = here.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
  const opened = [...here.querySelectorAll('details')].map((folded) => folded.open);
  here.replaceChildren(...document.importNode(fresh, true).childNodes);
  for (const [name, value] of picked) {
    const input = [...here.querySelectorAll('input')].find((i) => i.name === name && i.value === value);
    if (input) input.checked = true;
  }
  [...here.querySelectorAll('details')].forEach((folded, i) => { folded.open = opened[i] ?? folded.open; });
  if (focused) [...here.querySelectorAll('[aria-label]')].find((e) => e.getAttribute('aria-label') === focused)?.focus();
  return true;
}

function startEvents(live) {
  let due = null;
  let first = true;
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
      document.getElementById('live').replaceChildren(...document.importNode(fresh, true).childNodes);
      history.replaceState(null, '', url);
    }, 120);
  });
}

function startLive() {
  const live = document.getElementById('live');
  if (live) startEvents(live);
  const form = document.querySelector('form[role=search]');
  if (form) startSearch(form);
  const moved = document.getElementById('moved');
  if (moved) replaceFrom(moved.dataset.from, 'moved-list');
}
