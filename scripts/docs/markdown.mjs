/** Markdown to HTML: anchors as code forges make them, links to pages of the site, and coloured code. */
import { posix } from 'node:path';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import ini from 'highlight.js/lib/languages/ini';
import json from 'highlight.js/lib/languages/json';
import yaml from 'highlight.js/lib/languages/yaml';
import MarkdownIt from 'markdown-it';

for (const [name, language] of Object.entries({ bash, sh: bash, ini, json, yaml }))
  hljs.registerLanguage(name, language);

/**
 * Returns a function that renders a source to a page: `{path, output, title, html, contents, sections}`. `contents` are the headings
 * below the title, and `sections` the texts that the search finds. It throws an Error for a link to a file that is not in the site.
 */
export function createRenderer(sources) {
  const markdown = new MarkdownIt({ html: false, linkify: false, highlight });
  markdown.renderer.rules.table_open = () => '<div class="table"><table>\n';
  markdown.renderer.rules.table_close = () => '</table></div>\n';
  return (source) => {
    if (source.kind === 'folder') return renderFolder(source, sources);
    if (source.kind === 'text') return renderText(source);
    return renderMarkdown(source, { markdown, sources });
  };
}

function renderMarkdown({ path, output, text }, { markdown, sources }) {
  const tokens = markdown.parse(text, {});
  const contents = [];
  const sections = [];
  const anchors = new Map();
  let title = path;
  let section = { anchor: '', heading: '', text: '' };
  let columns = [];
  let column = 0;
  sections.push(section);
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const heading = plainText(tokens[index + 1]);
      if (token.tag === 'h1' && title === path) {
        title = heading;
        continue;
      }
      const anchor = anchorOf(heading, anchors);
      token.attrSet('id', anchor);
      if (token.tag <= 'h3') contents.push({ level: Number(token.tag.slice(1)), anchor, heading });
      section = { anchor, heading, text: '' };
      sections.push(section);
    } else if (token.type === 'inline') {
      if (tokens[index - 1]?.type !== 'heading_open') section.text += `${plainText(token)} `;
      for (const [place, child] of token.children.entries()) {
        const target = rewriteLink(child, { path, output, sources });
        if (target?.kind === 'markdown') showTitle(token.children[place + 1], target);
      }
    } else if (token.type === 'table_open') {
      columns = [];
    } else if (token.type === 'th_open') {
      columns.push(plainText(tokens[index + 1]));
    } else if (token.type === 'tr_open') {
      column = 0;
    } else if (token.type === 'td_open') {
      // Narrow windows show each row as a block, in which every cell needs its heading.
      token.attrSet('data-label', columns[column] ?? '');
      column += 1;
    } else if (token.type === 'fence') {
      section.text += `${token.content} `;
    }
  }
  return { path, output, title, html: markdown.renderer.render(tokens, markdown.options, {}), contents, sections };
}

function renderText({ path, output, text }) {
  const language = /\.ya?ml$/.test(path) ? 'yaml' : /\.json$/.test(path) ? 'json' : '';
  const html = `<h1>${escaped(posix.basename(path))}</h1>\n<p><code>${escaped(path)}</code></p>\n<pre><code>${highlight(text, language) || escaped(text)}</code></pre>\n`;
  return {
    path,
    output,
    title: posix.basename(path),
    html,
    contents: [],
    sections: [{ anchor: '', heading: '', text }],
  };
}

function renderFolder({ path, output, text }, sources) {
  const items = text.split('\n').flatMap((name) => {
    const target = sources.get(`${path}/${name}`);
    return target === undefined ? [] : [`<li><a href="${relative(output, target.output)}">${escaped(name)}</a></li>`];
  });
  const title = posix.basename(path);
  const html = `<h1>${escaped(title)}</h1>\n<p><code>${escaped(path)}</code></p>\n<ul>${items.join('')}</ul>\n`;
  return { path, output, title, html, contents: [], sections: [{ anchor: '', heading: '', text }] };
}

/** Links that show the name of a file show the title of its page. */
function showTitle(token, { path, text }) {
  const [, title] = /^# (.+)$/m.exec(text) ?? [];
  if (title !== undefined && token.content !== '' && path.endsWith(token.content) && token.content.endsWith('.md')) {
    token.content = title.replaceAll('`', '');
  }
}

/** Points a link or an image to the page of its target. Returns the target, or null for other tokens and other sites. */
function rewriteLink(token, { path, output, sources }) {
  const attribute = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : null;
  if (attribute === null) return null;
  const address = token.attrGet(attribute);
  if (/^[a-z]+:/.test(address) || address.startsWith('#')) return null;
  const [file, anchor] = decodeURI(address).split('#');
  const target = posix.join(posix.dirname(path), file).replace(/\/$/, '');
  const source = sources.get(target);
  if (source === undefined) throw new Error(`${path} links to ${address}, which is not in the site`);
  token.attrSet(attribute, `${relative(output, source.output)}${anchor === undefined ? '' : `#${anchor}`}`);
  return source;
}

/** Returns the address of a page as seen from another one. */
export const relative = (from, to) => posix.relative(posix.dirname(from), to);

/** Returns the anchor that code forges give a heading; repeated headings get a number. */
function anchorOf(heading, known) {
  const base = heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
  const count = known.get(base) ?? 0;
  known.set(base, count + 1);
  return count === 0 ? base : `${base}-${count}`;
}

const plainText = ({ children }) =>
  children
    .map((child) =>
      child.type === 'softbreak' ? ' ' : child.type === 'text' || child.type === 'code_inline' ? child.content : '',
    )
    .join('');

function highlight(text, language) {
  if (hljs.getLanguage(language) !== undefined) return hljs.highlight(text, { language }).value;
  return /^\$ /m.test(text) ? session(text) : '';
}

/** Tells the commands of a terminal, which begin with `$ `, from what they print. */
const session = (text) =>
  text.replaceAll(/^(\$ )?(.*)$/gm, (_, prompt, line) =>
    prompt === undefined
      ? `<span class="output">${escaped(line)}</span>`
      : `<span class="prompt">${prompt}</span><span class="command">${escaped(line)}</span>`,
  );

export const escaped = (text) =>
  text.replaceAll(/[&<>"]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[one]);
