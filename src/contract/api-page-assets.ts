/** Style and script of the page that shows the API. Neither refers to anything outside of the page. */

/** Colours of the page where it stands alone; the documentation site has its own of the same names. */
export const API_PAGE_THEME = `:root {
  color-scheme: light dark;
  --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --page: #ffffff; --panel: #f6f8fa; --link: #0550ae; --accent: #0969da;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --muted: #9198a1; --line: #3d444d; --page: #0d1117; --panel: #161b22; --link: #79c0ff; --accent: #4493f8; }
}
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
pre { overflow-x: auto; max-height: 24rem; }
`;

/** Style of the reference itself. */
export const API_REFERENCE_STYLE = `.api-search { position: sticky; top: 0; padding: 0.5rem 0; background: var(--page); z-index: 1; }
.api-search input { width: 100%; box-sizing: border-box; padding: 0.5rem 0.75rem; font: inherit; color: inherit; background: var(--panel);
  border: 1px solid var(--line); border-radius: 6px; }
.api-search input:focus { outline: 2px solid var(--accent); outline-offset: -1px; }
.api-tags { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; padding: 0; list-style: none; }
.api-entry { border: 1px solid var(--line); border-radius: 6px; margin: 0.5rem 0; scroll-margin-top: 4rem; overflow-wrap: anywhere; }
.api-entry > summary { cursor: pointer; padding: 0.5rem 0.75rem; display: flex; flex-wrap: wrap; gap: 0.25rem 0.75rem; align-items: baseline; }
.api-entry > summary:hover { background: var(--panel); }
.api-entry[open] > summary { border-bottom: 1px solid var(--line); background: var(--panel); }
.api-body { padding: 0.25rem 0.75rem 0.75rem; }
.api-body h4 { margin: 1rem 0 0.25rem; }
.api-method { font-family: ui-monospace, monospace; font-weight: 700; min-width: 4rem; }
.api-method-get { color: #0a6c33; } .api-method-post { color: #0550ae; } .api-method-put { color: #8a4600; } .api-method-delete { color: #b3261e; }
.api-what { color: var(--muted); }
.api-members { margin: 0.25rem 0; padding-left: 1rem; border-left: 2px solid var(--line); list-style: none; }
.api-members li { margin: 0.375rem 0; }
.api-type, .api-rule { color: var(--muted); font-size: 0.9em; }
.api-required { color: var(--accent); font-size: 0.8em; }
.api-note { display: block; font-size: 0.95em; }
.api-none { display: none; }
.api-hidden { display: none; }
@media (prefers-color-scheme: dark) {
  :root:not([data-theme=light]) .api-method-get { color: #57d98a; } :root:not([data-theme=light]) .api-method-post { color: #79c0ff; }
  :root:not([data-theme=light]) .api-method-put { color: #f0b072; } :root:not([data-theme=light]) .api-method-delete { color: #ff9a92; }
}
:root[data-theme=dark] .api-method-get { color: #57d98a; } :root[data-theme=dark] .api-method-post { color: #79c0ff; }
:root[data-theme=dark] .api-method-put { color: #f0b072; } :root[data-theme=dark] .api-method-delete { color: #ff9a92; }
`;

/** Filters the entries by the words of the search field, and opens the entry that the address names. */
export const API_REFERENCE_SCRIPT = `'use strict';
(() => {
  const field = document.getElementById('api-search');
  const entries = [...document.querySelectorAll('.api-entry')];
  const groups = [...document.querySelectorAll('.api-group')];
  const none = document.getElementById('api-none');
  const filter = () => {
    const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
    for (const entry of entries) {
      const text = entry.dataset.search;
      entry.classList.toggle('api-hidden', !words.every((word) => text.includes(word)));
    }
    for (const group of groups) {
      group.classList.toggle('api-hidden', group.querySelector('.api-entry:not(.api-hidden)') === null);
    }
    none.className = groups.every((group) => group.classList.contains('api-hidden')) ? '' : 'api-none';
  };
  const openTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target === null || target.tagName !== 'DETAILS') return;
    field.value = '';
    filter();
    target.open = true;
    target.scrollIntoView();
  };
  field.addEventListener('input', filter);
  addEventListener('hashchange', openTarget);
  openTarget();
})();
`;
