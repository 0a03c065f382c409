// SPDX-License-Identifier: MIT
// What starts when the page is there.

function startTheme() {
  const button = document.getElementById('theme');
  const root = document.documentElement;
  const dark = () => root.dataset.theme === 'dark' ||
    (!root.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  const name = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
  button.hidden = false;
  button.setAttribute('aria-label', 'Switch between the light and the dark theme');
  button.addEventListener('click', () => {
    root.dataset.theme = dark() ? 'light' : 'dark';
    name();
  });
  name();
}

// What is folded is printed all the same, but for texts of any length: of these the beginning.
function startPrint() {
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open], .long)')];
    for (const folded of opened) folded.open = true;
  });
  addEventListener('afterprint', () => {
    for (const folded of opened) folded.open = false;
  });
}

startTheme();
startPrint();
startLink();
startTable();
startPlots();
startExport();
if (typeof startFlames === 'function') startFlames(); // of pages with profiles
if (typeof startLive === 'function') startLive(); // of assay serve
startSections();
goTo();
document.documentElement.dataset.ready = '1';
