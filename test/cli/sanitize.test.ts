/** Nothing that an agent or a server says can steer the terminal of an operator. */

import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readGlobals } from '../../src/cli/global-options.js';
import { fields, lines, type View } from '../../src/cli/outcome.js';
import { createPrinter } from '../../src/cli/render/printer.js';
import { escapeJson, sanitize, sanitizeLine } from '../../src/cli/render/terminal-text.js';
import { renderYaml } from '../../src/cli/render/yaml.js';

const HOSTILE: readonly (readonly [what: string, text: string, shown: string])[] = [
  ['colours', '\x1b[31mred\x1b[0m', '\\x1b[31mred\\x1b[0m'],
  ['a title', '\x1b]0;owned\x07', '\\x1b]0;owned\\x07'],
  ['the clipboard (OSC 52)', '\x1b]52;c;cm0gLXJm\x1b\\', '\\x1b]52;c;cm0gLXJm\\x1b\\'],
  ['C1 controls', 'a\x9b2Jb\x9d0;x\x9c', 'a\\x9b2Jb\\x9d0;x\\x9c'],
  ['carriage return and backspace', 'ok\rno\bno', 'ok\\rno\\x08no'],
  ['line ends', 'web-01\nweb-02', 'web-01\\nweb-02'],
  ['bidirectional overrides', 'user\u202etxt.exe\u202c', 'user\\u202etxt.exe\\u202c'],
  ['isolates and marks', '\u2066a\u2069\u200f\u061c', '\\u2066a\\u2069\\u200f\\u061c'],
  ['what nobody sees', 'ad\u200bmin\ufeff\u00ad\u2060', 'ad\\u200bmin\\ufeff\\xad\\u2060'],
  ['tags', 'a\u{e0041}\u{e007f}', 'a\\u{e0041}\\u{e007f}'],
  ['line separators', 'a\u2028b\u2029c', 'a\\u2028b\\u2029c'],
  ['half characters', 'a\ud800b\udc00', 'a\\ud800b\\udc00'],
  ['NUL and DEL', 'a\0b\x7f', 'a\\x00b\\x7f'],
];

const harmless = ['web-01', 'Grüße', '日本語', 'naïve — “quotes” …', '👍', 'a\\x1b', '‹secret db #7f3a›'];

describe('sanitize', () => {
  it.each(HOSTILE)('shows %s instead of obeying them', (_what, text, shown) => {
    expect(sanitize(text)).toBe(shown);
  });

  it.each(harmless)('leaves %s alone', (text) => {
    expect(sanitize(text)).toBe(text);
  });

  it('keeps the indentation of lines of files', () => {
    expect(sanitizeLine('\tif x;\x1b')).toBe('    if x;\\x1b');
    expect(sanitize('\tx')).toBe('\\tx');
  });

  it('leaves no control, format or half character in any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(sanitize(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      }),
    );
  });
});

describe('JSON and YAML', () => {
  it('escape every hostile character and mean the same', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const body = { [text]: [text] };
        const json = escapeJson(JSON.stringify(body, null, 2));
        expect(json.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
        expect(JSON.parse(json)).toEqual(body);
      }),
    );
  });

  it.each(HOSTILE.filter(([what]) => what !== 'half characters'))(
    'YAML escapes %s and means the same',
    (_what, text) => {
      const body = { text, list: [text, 'plain'], [text]: 1 };
      const yaml = renderYaml(body);
      expect(yaml.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      expect(parse(yaml)).toEqual(body);
    },
  );

  it('YAML keeps texts of several lines readable', () => {
    expect(renderYaml({ content: 'a: 1\nb: 2\n' })).toBe('content: |\n  a: 1\n  b: 2\n');
  });
});

describe('whatever is printed for people', () => {
  const hostile = HOSTILE.map(([, text]) => text).join('');
  const views: readonly (readonly [string, View])[] = [
    [
      'a table',
      {
        kind: 'table',
        columns: [{ title: 'A' }, { title: hostile }],
        rows: [[hostile, { text: hostile, style: 'bad' }]],
        empty: '',
      },
    ],
    ['an empty table', { kind: 'table', columns: [], rows: [], empty: hostile }],
    ['fields', fields([hostile, hostile])],
    ['lines', lines(hostile, [hostile, { text: hostile, style: 'dim' }])],
  ];

  it.each(views)('%s holds no control character but line ends', async (_what, view) => {
    const out = new PassThrough();
    const printer = await createPrinter({ stdout: out, stderr: out, env: {}, globals: readGlobals({}) });
    await printer.show({ view });
    printer.note(hostile);
    printer.warn([hostile]);
    await printer.fail(new Error(hostile));
    const text = String(out.read());
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
  });
});
