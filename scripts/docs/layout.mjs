/** The HTML document around the content of a page: header with search, navigation, contents and neighbours. */
import { escaped, relative } from './markdown.mjs';
import { pagesOf } from './navigation.mjs';

// Runs before the first paint, so that the page does not appear in the wrong colours.
const EARLY_SCRIPT = `document.documentElement.classList.add('js');try{const t=localStorage.getItem('orch-theme');if(t)document.documentElement.dataset.theme=t}catch{}`;

/** Returns the whole document of a page. */
export function layout(page, navigation, version) {
  const { output, title, html, contents, style = '', script = '' } = page;
  const to = (target) => escaped(relative(output, target));
  const order = pagesOf(navigation);
  const place = order.findIndex((one) => one.output === output);
  const before = order[place - 1];
  const after = place === -1 ? undefined : order[place + 1];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(output === 'index.html' ? title : `${title} – orch`)}</title>
<link rel="stylesheet" href="${to('assets/site.css')}">
${style === '' ? '' : `<style>${style}</style>\n`}<script>${EARLY_SCRIPT}</script>
</head>
<body data-root="${escaped(relative(output, 'index.html').replace(/index\.html$/, ''))}">
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<button class="menu" type="button" aria-expanded="false" aria-controls="navigation" aria-label="Navigation">☰</button>
<a class="brand" href="${to('index.html')}">orch <span>${escaped(version)}</span></a>
<div class="search" role="search">
<input id="search" type="search" placeholder="Search (press /)" aria-label="Search the documentation" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="results">
<ul id="results" role="listbox" aria-label="Search results" hidden></ul>
</div>
<button class="theme" type="button" aria-label="Colours: light, dark or as the system">◐</button>
</header>
<div class="columns">
<nav id="navigation" class="navigation" aria-label="Pages">
${navigation.map((section) => sectionOf(section, page)).join('\n')}
</nav>
<main id="content">
<article>
${html}
</article>
<footer class="neighbours">
${before === undefined ? '<span></span>' : `<a rel="prev" href="${to(before.output)}">← ${escaped(before.title)}</a>`}
${after === undefined ? '<span></span>' : `<a rel="next" href="${to(after.output)}">${escaped(after.title)} →</a>`}
</footer>
</main>
${contentsOf(contents)}
</div>
<script src="${to('assets/site.js')}"></script>
${script === '' ? '' : `<script>${script}</script>\n`}</body>
</html>
`;
}

/** A section or group is open on the pages in it. */
function sectionOf({ title, items }, page) {
  const isOpen = pagesOf(items).some(({ output }) => output === page.output);
  const entries = items.map((item) =>
    'items' in item ? `<li>${sectionOf(item, page)}</li>` : `<li>${linkOf(item, page)}</li>`,
  );
  return `<details${isOpen ? ' open' : ''}><summary>${escaped(title)}</summary><ul>${entries.join('')}</ul></details>`;
}

const linkOf = ({ output, title }, page) =>
  `<a href="${escaped(relative(page.output, output) || '#')}"${output === page.output ? ' aria-current="page"' : ''}>${escaped(title)}</a>`;

function contentsOf(contents) {
  if (contents.length < 2) return '';
  const items = contents.map(
    ({ level, anchor, heading }) =>
      `<li class="level-${level}"><a href="#${escaped(anchor)}">${escaped(heading)}</a></li>`,
  );
  return `<aside class="contents" aria-label="On this page"><h2>On this page</h2><ul>${items.join('')}</ul></aside>`;
}
