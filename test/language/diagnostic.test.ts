/** How a diagnostic looks to a person, and where JSON pointers stand. */
import { describe, expect, it } from 'vitest';
import { type Diagnostic, renderDiagnostic } from '../../src/language/diagnostic.js';
import { parseModule } from '../../src/language/parse-module.js';

const diagnostic = (change: Partial<Diagnostic>): Diagnostic => ({
  severity: 'error',
  code: 'unknown_key',
  message: 'a message',
  path: '',
  line: 1,
  column: 1,
  ...change,
});

const shown = (source: string, change: Partial<Diagnostic>) =>
  renderDiagnostic(diagnostic(change), { file: 'web.orch.yaml', source }).split('\n');

describe('renderDiagnostic', () => {
  it('names the place and marks the part', () => {
    expect(shown('name: web\nnmae: x\n', { line: 2, column: 1, endColumn: 5, severity: 'warning' })).toEqual([
      'web.orch.yaml:2:1: warning: a message',
      '2 | nmae: x',
      '  | ^^^^',
    ]);
  });

  it('marks one character where no end is known', () => {
    expect(shown('a: [1\n', { column: 4 })[2]).toBe('  |    ^');
  });

  it('keeps tabs, so that the marker stands right at every tab width', () => {
    expect(shown('\ta:\tb\n', { column: 5, endColumn: 6 })).toEqual([
      'web.orch.yaml:1:5: error: a message',
      '1 | \ta:\tb',
      '  | \t  \t^',
    ]);
  });

  it('gives wide characters two cells, combining ones none', () => {
    expect(shown('名字: x\n', { column: 5, endColumn: 6 })[2]).toBe('  |       ^');
    expect(shown('e\u0301: 😀 x\n', { column: 8, endColumn: 9 })[2]).toBe('  |       ^');
    expect(shown('a: 名字\n', { column: 4, endColumn: 6 })[2]).toBe('  |    ^^^^');
  });

  it('neutralises control characters of the source, the message and the file name', () => {
    const text = renderDiagnostic(diagnostic({ message: 'bad \u001b]52;c;x\u0007', column: 6, endColumn: 7 }), {
      file: 'a\u001b[2J\u202e.yaml',
      source: 'a: \u001b[31m\u009b\u0000\u202e\u2066 b\r\n',
    });
    expect(text).toBe('a␛[2J�.yaml:1:6: error: bad ␛]52;c;x␇\n1 | a: ␛[31m�␀�� b\n  |      ^');
  });

  it('shows only the surroundings in a long line', () => {
    const [, line = '', marker = ''] = shown(`${'x'.repeat(500)}HERE${'y'.repeat(500)}`, {
      column: 501,
      endColumn: 505,
    });
    expect(line.length).toBeLessThan(140);
    expect(line).toMatch(/^1 \| …x+HEREy+…$/);
    expect(line.indexOf('HERE')).toBe(marker.indexOf('^'));
    expect(marker.trimEnd().length - marker.indexOf('^')).toBe(4);
  });

  it('leaves the excerpt out where there is no line to show', () => {
    expect(shown('', {})).toEqual(['web.orch.yaml:1:1: error: a message']);
    expect(shown('a\n', { line: 7 })).toEqual(['web.orch.yaml:7:1: error: a message']);
  });

  it('does not count a byte order mark or a carriage return', () => {
    expect(shown('\ufeffname: x\r\n', { column: 1, endColumn: 5 })).toEqual([
      'web.orch.yaml:1:1: error: a message',
      '1 | name: x',
      '  | ^^^^',
    ]);
  });

  it('renders what the parser reports', () => {
    const source =
      'name: web\nsupports: [{platform: linux}]\nresources:\n  - resource:\n      file-unix:\n        path: /a\n        mode: 0644\n';
    const rendered = parseModule(source).diagnostics.map((one) => renderDiagnostic(one, { file: 'm.yaml', source }));
    expect(rendered).toEqual([
      'm.yaml:7:15: error: "mode" must be a string in quotes, because YAML reads 0644 as a number; write mode: "0644"\n7 |         mode: 0644\n  |               ^^^^',
    ]);
  });
});

describe('diagnostics', () => {
  it('are at most a thousand, with a last one that says how many are missing', () => {
    const { diagnostics } = parseModule(`name: web\n${'x: 1\n'.repeat(1500)}`);
    expect(diagnostics).toHaveLength(1001);
    expect(diagnostics.at(-1)).toEqual({
      severity: 'error',
      code: 'too_many_mistakes',
      message: '501 more mistakes follow',
      path: '',
      line: 1001,
      column: 1,
      endColumn: 2,
    });
  });
});

describe('locate', () => {
  const source =
    '\ufeffname: web\nsupports: [{platform: linux}]\nresources:\n  - resource:\n      file-unix:\n        path: /a\n        "a/b~": x\n';
  const { locate } = parseModule(source);
  it.each([
    ['', 1, 1],
    ['/name', 1, 7],
    ['/supports/0/platform', 2, 23],
    ['/resources', 4, 3],
    ['/resources/0', 4, 5],
    ['/resources/0/resource/file-unix/path', 6, 15],
    ['/resources/0/resource/file-unix/a~1b~0', 7, 17],
    ['/resources/0/resource/file-unix/mode', 6, 9],
    ['/resources/9/resource', 4, 3],
    ['/nothing/here', 1, 1],
  ])('%s', (pointer, line, column) => expect(locate(pointer)).toEqual({ line, column }));

  it('answers the start for a text that is no YAML', () => {
    expect(parseModule('a: [').locate('/a/0')).toEqual({ line: 1, column: 1 });
  });
});
