// SPDX-License-Identifier: MIT
// What a reader has chosen stands in the address, behind "#?", so that a link shows the same.

const chosen = new URLSearchParams(location.hash.startsWith('#?') ? location.hash.slice(2) : '');

function keepState(key, value) {
  if ((chosen.get(key) ?? '') === value) return;
  if (value) chosen.set(key, value);
  else chosen.delete(key);
  const text = chosen.toString();
  history.replaceState(null, '', text ? `#?${text}` : location.pathname + location.search);
}

function startLink() {
  const button = make('button', { type: 'button', id: 'copy-link', textContent: 'Copy link' });
  document.getElementById('theme').after(button);
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Copy the address above';
    }
    setTimeout(() => { button.textContent = 'Copy link'; }, 3000);
  });
  // A link within the page would put its own target into the address, in the place of what was chosen.
  addEventListener('hashchange', () => {
    if (location.hash.startsWith('#?')) location.reload(); // another link was typed or pasted
    else if ([...chosen].length) keepState('to', location.hash.slice(1));
  });
}

// Sections that were opened or closed, by their place in the page.
function startSections() {
  const sections = [...document.querySelectorAll('main details:not(.long)')].filter((d) => !d.closest('#live'));
  const opened = sections.map((section) => section.open);
  for (const index of (chosen.get('sections') ?? '').split('.').filter((text) => /^\d+$/.test(text))) {
    if (sections[index]) sections[index].open = !opened[index];
  }
  const keep = () => keepState('sections', sections.map((_, i) => i).filter((i) => sections[i].open !== opened[i]).join('.'));
  for (const section of sections) section.addEventListener('toggle', keep);
}

// Where the reader was, when all that the address asks for is there.
function goTo() {
  const target = chosen.get('to');
  if (target) document.getElementById(target)?.scrollIntoView();
}
