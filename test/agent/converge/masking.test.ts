import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Masking } from '../../../src/agent/converge/masking.js';
import { mask, maskCounterpart, type Span } from '../../../src/kernel/tainted.js';
import { file, removal } from '../../support/agent.js';

/** A text with its secrets between angle brackets. */
function tainted(marked: string): { text: string; spans: Span[] } {
  const spans: Span[] = [];
  let text = '';
  for (const [index, part] of marked.split(/[<>]/).entries()) {
    if (index % 2 === 1)
      spans.push({ start: text.length, end: text.length + part.length, secret: `s${spans.length}`, tag: '0000' });
    text += part;
  }
  return { text, spans };
}

const old = (text: string, marked: string): string => {
  const counterpart = tainted(marked);
  return maskCounterpart(text, counterpart.spans, counterpart.text);
};

describe('an old text', () => {
  it('is shown where it is public, and around a secret', () => {
    expect(old('a=1\npw=old\nb=2\n', 'a=1\npw=<new>\nb=2\n')).toBe('a=1\npw=‹masked›\nb=2\n');
    expect(old('url=u:old@h', 'url=<user>:<pw>@h')).toBe('url=‹masked›:‹masked›@h');
  });

  it('shows a secret that has not changed like the new one', () => {
    expect(old('pw=new', 'pw=<new>')).toBe('pw=‹secret s0 #0000›');
  });

  it('is masked line by line where nothing fits', () => {
    expect(old('x\npw: old\n', 'pw=<new>\n')).toBe('‹masked line›\n‹masked line›\n');
    expect(old('anything', '<new>')).toBe('‹masked line›');
    expect(old('', '<new>')).toBe('');
  });

  it('of a secret of several lines is masked', () => {
    expect(old('-----BEGIN\nabc\n-----END\nname=a\n', '<-----BEGIN\nxyz\n-----END>\nname=a\n')).toBe(
      '‹masked line›\n‹masked line›\n‹masked line›\nname=a\n',
    );
  });

  it('is as it is when the new one holds no secret', () => {
    expect(maskCounterpart('x', [], 'y')).toBe('x');
    expect(maskCounterpart('x', undefined, 'y')).toBe('x');
    expect(maskCounterpart('x\ny', [{ start: 0, end: 1, secret: 's', tag: '0000' }])).toBe(
      '‹masked line›\n‹masked line›',
    );
  });

  it('never shows a text that the new one does not have in public', () => {
    const piece = fc.constantFrom('a', 'b=', '\n', ':', ' ', 'pw=');
    const marked = fc.array(
      fc.oneof(
        piece,
        piece.map((text) => `<${text}Q>`),
      ),
      { maxLength: 20 },
    );
    const before = fc.array(fc.oneof(piece, fc.constant('SECRET')), { maxLength: 20 });
    fc.assert(
      fc.property(marked, before, (parts, lines) => {
        const { text, spans } = tainted(parts.join(''));
        const shown = maskCounterpart(lines.join(''), spans, text);
        if (spans.length > 0) expect(shown).not.toContain('SECRET');
        expect(mask(text, spans)).not.toContain('Q');
        expect(shown.split('\n').length).toBe(lines.join('').split('\n').length);
      }),
      { numRuns: 500 },
    );
  });
});

describe('what is shown of a resource', () => {
  const span = (start: number, end: number): Span => ({ start, end, secret: 'pw', tag: '1234' });

  it('quotes no secret in sentences and changes', () => {
    const source = file('/f', { owner: 'ab', content: 'x' }, { taint: { '/owner': [span(0, 2)] } });
    const masking = new Masking({ source });
    expect(masking.sentence('there is no user "ab"')).toBe('there is no user "‹secret pw #1234›"');
    expect(masking.change({ field: 'owner', before: 'root', after: 'ab' })).toEqual({
      field: 'owner',
      before: '‹masked line›',
      after: '‹secret pw #1234›',
    });
    expect(masking.change({ field: 'mode', before: '0644', after: '0600' })).toEqual({
      field: 'mode',
      before: '0644',
      after: '0600',
    });
    expect(masking.texts({ before: 'y', after: 'x' })).toEqual({ before: 'y', after: 'x' });
  });

  it('is nothing when the places of the secrets in a text are unknown', () => {
    const masking = new Masking({ source: file('/f', { owner: 'ab' }, { taint: { '/owner': [span(0, 2)] } }) });
    expect(masking.texts({ before: 'a\n', after: 'composed\n' })).toEqual({
      before: '‹masked line›\n',
      after: '‹masked line›\n',
    });
    expect(masking.texts({ before: 'a', after: null })).toEqual({ before: '‹masked line›', after: null });
  });

  it('finds secrets deep in a body, and is everything of a removal', () => {
    const body = { environment: { 'a/b~c': 'key=123456' } };
    const source = file('/f', body, { taint: { '/environment/a~1b~0c': [span(4, 10)] } });
    expect(new Masking({ source }).sentence('bad 123456!')).toBe('bad ‹secret pw #1234›!');
    expect(new Masking({ source: removal(source) }).sentence('bad 123456!')).toBe('bad 123456!');
  });
});
