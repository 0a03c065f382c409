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
}
