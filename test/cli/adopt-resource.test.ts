/** Edits of modules that declare what a machine has. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { unifiedDiff } from '../../src/agent/converge/unified-diff.js';
import { adoptResource } from '../../src/cli/modules/adopt-resource.js';
import type { DriftResource } from '../../src/contract/runs.js';
import { UNDECLARED } from '../../src/resources/purge.js';
import { drawn } from '../support/exhaustive.js';

const POINTER = { path: '/resources/0/resource/file-unix', element: null, beside: null };

const resource = (fields: Partial<DriftResource>): DriftResource => ({
  module: 'site',
  kind: 'file-unix',
  identity: '/etc/motd',
  id: null,
  name: null,
  action: 'update',
  status: 'pending',
  changes: [],
  diff: null,
  sensitive: false,
  reason: null,
  error: null,
  duration_ms: 1,
  ...fields,
});

/** A result of a drift check: the content that the machine has in the place of the declared one. */
const content = (machine: string, declared: string) =>
  resource({
    changes: [{ field: 'content', before: null, after: null }],
    diff: unifiedDiff({ path: '/etc/motd', before: machine, after: declared }),
  });

const field = (name: string, before: string | null, after: string | null) =>
  resource({ changes: [{ field: name, before, after }] });

const module = (lines: readonly string[]): string =>
  [
    '# The greeting.',
    'name: site',
    'supports: [{platform: linux}] # all of them',
    'resources:',
    '  # It comes first.',
    '  - resource:',
    '      file-unix:',
    '        path: /etc/motd # here',
    ...lines.map((line) => (line === '' ? '' : `        ${line}`)),
    '  - resource: {directory-unix: {path: /srv}}   # and last',
    '',
  ].join('\n');

function edited(text: string, drifted: DriftResource): string {
  const edit = adoptResource(text, POINTER, drifted);
  if ('why' in edit) throw new Error(edit.why);
  return edit.text;
}

describe('adopting a resource', () => {
  it('changes a block of text, and keeps its comments and its form', () => {
    const before = module(['content: |', '  hello', '', '  world', 'mode: "0644" # readable']);
    expect(edited(before, content('hello\n\nmars\n', 'hello\n\nworld\n'))).toBe(before.replace('  world', '  mars'));
    expect(edited(before, content('hello', 'hello\n\nworld\n'))).toBe(
      module(['content: |-', '  hello', 'mode: "0644" # readable']),
    );
    expect(edited(before, content('a\n\n\n', 'hello\n\nworld\n'))).toBe(
      module(['content: |+', '  a', '', '', 'mode: "0644" # readable']),
    );
  });

  it.each([
    ['plain', 'content: one', 'two', 'content: two'],
    ['plain that would be another value', 'content: one', 'true', 'content: "true"'],
    ['plain with a comment', 'content: one # note', 'two # not a note', 'content: "two # not a note" # note'],
    ['single quotes', "content: 'one'", "it's", "content: 'it''s'"],
    ['double quotes', 'content: "one"', 'two\nthree\n', 'content: "two\\nthree\\n"'],
    ['nothing', 'content: one', '', 'content: ""'],
    ['control characters in a block', 'content: |-\n          one', 'a\u0007b\r\n', 'content: "a\\u0007b\\r\\n"'],
  ])('writes %s', (_, line, machine, expected) => {
    expect(edited(module([line]), content(machine, 'one'))).toBe(module([expected]));
  });

  it('changes modes, owners, numbers and booleans in their own form', () => {
    expect(edited(module(['mode: "644"']), field('mode', '0600', '0644'))).toBe(module(['mode: "0600"']));
    expect(edited(module(['owner: root']), field('owner', 'www', 'root'))).toBe(module(['owner: www']));
    expect(edited(module(['uid: 100']), field('uid', '200', '100'))).toBe(module(['uid: 200']));
    expect(edited(module(['enabled: true']), field('enabled', 'disabled', 'enabled'))).toBe(module(['enabled: false']));
    expect(
      edited(
        'name: a\nresources: [{resource: {file-unix: {path: /a, mode: "0644"}}}]\n',
        field('mode', '0600', '0644'),
      ),
    ).toBe('name: a\nresources: [{resource: {file-unix: {path: /a, mode: "0600"}}}]\n');
  });

  it.each([
    [
      'a secret',
      ['content: one'],
      { ...content('two', 'one'), sensitive: true },
      'it holds a secret, and secrets are not printed',
    ],
    [
      'a missing resource',
      ['content: one'],
      resource({ action: 'create' }),
      'it is missing on the machine: remove it from the module, or apply it',
    ],
    [
      'what is to be absent',
      ['content: one'],
      resource({ action: 'remove' }),
      'it is there on the machine: take its "absent" out of the module, or apply it',
    ],
    [
      'a template',
      ['template: greeting'],
      content('two', 'one'),
      'its content comes from the template "greeting": edit that, for every resource that uses it',
    ],
    [
      'a file beside the module',
      ['source: files/motd'],
      content('two', 'one'),
      'its content is the file "files/motd" beside the module: copy that of the machine there',
    ],
    [
      'an expression',
      [`content: "hi $\{{ tags.who }}"`],
      content('two', 'one'),
      `its content has the expression $\{{ tags.who }}`,
    ],
    [
      'a field that is not declared',
      ['content: one'],
      field('mode', '0600', '0644'),
      'the module does not declare its mode',
    ],
    [
      'another value than the applied one',
      ['owner: eve'],
      field('owner', 'www', 'root'),
      'its owner is "www" on the machine, and the module does not declare "root" in that field',
    ],
    [
      'another content than the applied one',
      ['content: three'],
      content('two', 'one'),
      'its content in the module is not the applied one: apply the module first',
    ],
    [
      'binary content',
      ['content: one'],
      field('content', 'binary data', null),
      'its content on the machine is binary data',
    ],
    [
      'a cut diff',
      ['content: one'],
      resource({ changes: [{ field: 'content', before: null, after: null }], diff: '… 99 characters are not shown\n' }),
      'the difference is too long to be reported in full',
    ],
    [
      'an expression on the machine',
      ['content: one'],
      content(`$\{{ secrets.A }}`, 'one'),
      `its content on the machine contains $\{{, which orch would evaluate`,
    ],
    ['an anchor', ['content: &a one'], content('two', 'one'), 'its content has an anchor or a tag'],
    [
      'a field that is an alias',
      ['owner: &x root', 'group: *x'],
      field('group', 'www', 'root'),
      'its group is the alias *x, so edit its anchor',
    ],
    ['a list', ['keys: [a]'], field('keys', 'b', 'a'), 'its keys is a list or a mapping'],
    ['content that is no text', ['content: 12'], content('two', 'one'), 'its content is no text in the module'],
    [
      'what nothing declares',
      ['content: one'],
      field(UNDECLARED, '/srv/extra', null),
      'it holds what nothing declares: declare that, or apply the module',
    ],
    [
      'a value that the machine does not have',
      ['owner: root'],
      field('owner', null, 'root'),
      'its owner is "none" on the machine',
    ],
    [
      'a value that was cut',
      ['comment: short'],
      field('comment', 'x'.repeat(512), 'short'),
      `its comment is "${'x'.repeat(512)}" on the machine`,
    ],
    ['what differs in no field', ['content: one'], resource({}), 'no field of it differs'],
    ['a script', ['content: one'], resource({ action: 'run', reason: 'its check fails' }), 'its check fails'],
  ])('leaves %s to a person', (_, lines, drifted, why) => {
    expect(adoptResource(module(lines), POINTER, drifted)).toEqual({ why });
  });

  it('finds a kind that stands in place of "resource", also in a group', () => {
    const text = (value: string) =>
      `name: a\nresources:\n  - file-unix: {path: /a, content: ${value}} # one line\n  - resources: [{id: b, file-unix: {path: /b, content: ${value}}}]\n`;
    const first = edited(text('one'), content('two', 'one'));
    expect(first).toBe(text('one').replace('content: one}', 'content: two}'));
    const place = { path: '/resources/1/resources/0/resource/file-unix', element: null, beside: null };
    expect(adoptResource(first, place, content('two', 'one'))).toEqual({ text: text('two') });
  });

  it('leaves an element of a loop to a person', () => {
    const text = 'name: a\nresources: [{for_each: [x, y], file-unix: {path: "/${{ each.key }}", content: one}}]\n';
    expect(adoptResource(text, { ...POINTER, element: 'x', beside: null }, content('two', 'one'))).toEqual({
      why: 'it is the element "x" of a loop, and the same text makes the others',
    });
  });

  it('leaves what comes with a directory beside the module to a person, and names the file', () => {
    const text = 'name: a\nresources: [{directory-unix: {path: /srv/site, source: files/site}}]\n';
    const place = { path: '/resources/0/resource/directory-unix', element: null, beside: 'files/site/index.html' };
    expect(adoptResource(text, place, content('two', 'one'))).toEqual({
      why: 'its content is the file "files/site/index.html" beside the module: copy that of the machine there',
    });
    expect(adoptResource(text, place, field('mode', '0600', '0644'))).toEqual({
      why: 'it comes from "files/site/index.html" beside the module: change its mode in the resource of the directory',
    });
  });

  it('leaves a resource that is no mapping to a person', () => {
    const text = 'name: a\nresources: [{resource: {file-unix: [path, content]}}]\n';
    expect(adoptResource(text, POINTER, content('two', 'one'))).toEqual({
      why: 'the resource is not written as a mapping',
    });
  });

  it('leaves an alias to a person', () => {
    const text = 'name: a\nx: &body {path: /a, content: one}\nresources: [{resource: {file-unix: *body}}]\n';
    expect(adoptResource(text, POINTER, content('two', 'one'))).toEqual({
      why: 'the resource is the alias *body, so edit its anchor',
    });
  });

  it('declares any text exactly, or leaves it to a person', () => {
    const texts = fc.string({
      unit: fc.constantFrom('a', 'b', ' ', '\n', '\t', '#', ':', '-', '"', "'", '|', 'é', '\r'),
    });
    fc.assert(
      fc.property(texts, texts, fc.constantFrom('block', 'quoted'), (machine, declared, form) => {
        fc.pre(machine !== declared);
        const value = JSON.stringify(declared);
        const text = module([form === 'quoted' ? `content: ${value}` : `content: |-\n          x${machine.length}`]);
        const from = form === 'quoted' ? declared : `x${machine.length}`;
        if (machine === from) return;
        const edit = adoptResource(text, POINTER, content(machine, from));
        if (!('text' in edit)) throw new Error(edit.why);
        expect(parse(edit.text).resources[0].resource['file-unix'].content).toBe(machine);
        expect(edit.text).toContain('# and last');
      }),
      { numRuns: drawn(500) },
    );
  });
});
