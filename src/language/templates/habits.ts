/** Messages about tags of Jinja and of other Liquids that templates do not have. */
import { suggestion } from '../nearest.js';
import { quoted } from '../printable.js';

const TAGS = ['if', 'elsif', 'else', 'endif', 'for', 'endfor', 'render', 'raw', 'endraw', 'comment', 'endcomment'];

const EXPRESSIONS = 'write the value where it is needed; a module takes values from outside with "inputs"';
const RENDER = 'another template of this module is inserted with {% render "ID" %}';

/** What stands in place of a tag that is not known. */
const INSTEAD: Readonly<Record<string, string>> = {
  elif: 'it is called elsif here',
  elseif: 'it is called elsif here',
  unless: 'write {% if not … %}',
  case: 'write {% if … == … %} and {% elsif … %}',
  when: 'write {% if … == … %} and {% elsif … %}',
  switch: 'write {% if … == … %} and {% elsif … %}',
  set: EXPRESSIONS,
  assign: EXPRESSIONS,
  capture: EXPRESSIONS,
  increment: EXPRESSIONS,
  decrement: EXPRESSIONS,
  with: EXPRESSIONS,
  include: RENDER,
  import: RENDER,
  from: RENDER,
  extends: RENDER,
  layout: RENDER,
  block: RENDER,
  macro: `${RENDER}, which takes parameters: {% render "ID", NAME: VALUE %}`,
  call: `${RENDER}, which takes parameters: {% render "ID", NAME: VALUE %}`,
  break: 'a loop goes over all elements; put what some of them need into {% if … %}',
  continue: 'a loop goes over all elements; put what some of them need into {% if … %}',
  tablerow: 'write {% for … %}',
  cycle: 'ask forloop.index, such as {% if forloop.first %}',
  echo: 'write {{ … }}',
  verbatim: 'it is called raw here',
  filter: 'write the filter where the value is inserted: {{ VALUE | FILTER }}',
  end: 'each tag ends with its own name, such as {% endif %} and {% endfor %}',
};

/** Returns a message about a tag that is not known; null for the end of one that is reported itself. */
export function unknownTag(name: string): string | null {
  if (Object.hasOwn(INSTEAD, name.replace(/^end/, '')) && !Object.hasOwn(INSTEAD, name)) return null;
  if (name === '') return 'the name of a tag is missing, such as {% if inputs.tls %}';
  const instead = Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : undefined;
  if (instead !== undefined) return `{% ${name} %} is not known; ${instead}`;
  return `unknown tag ${quoted(name)}; known: if, elsif, else, for, render, raw, comment${suggestion(name, TAGS)}`;
}

/** Returns a message about how a loop of another language is written, or null. @param name what stands before `in` */
export function otherTag(name: string, rest: string): string | null {
  if (name.includes(',')) {
    return 'a loop over a mapping has one name, here such as {% for site in inputs.sites %}: site.key is the name in the mapping, and site.value the value';
  }
  const [call = ''] = /\.(items|keys|values)\(\)|\brange\(|\(\s*\d+\s*\.\./.exec(rest) ?? [];
  if (call.startsWith('.')) return `leave out ${call}; a loop over a mapping gives NAME.key and NAME.value`;
  return call === '' ? null : 'a loop goes over a list or a mapping, and not over a range of numbers';
}
