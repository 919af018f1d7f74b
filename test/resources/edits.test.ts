/** Kinds that change a part of a file, on random texts: once is enough, nothing else changes, and what was put in comes out again. */
import { describe, expect, it } from 'vitest';
import { blockUnix } from '../../src/resources/block-unix.js';
import type { EditHave } from '../../src/resources/edits/file-edit.js';
import { contentOf, insertAt, linesOf } from '../../src/resources/edits/text-lines.js';
import type { PathFact, Step } from '../../src/resources/host.js';
import type { Decision, PlanContext, ResourceKind } from '../../src/resources/kind.js';
import { lineUnix } from '../../src/resources/line-unix.js';
import { settingUnix } from '../../src/resources/setting-unix.js';
import { FakeHost } from '../support/resources.js';

const PATH = '/etc/app.conf';
const fileOf = (text: string): PathFact => ({
  type: 'file',
  size: text.length,
  content: { kind: 'text', text },
  uid: 0,
  gid: 0,
  mode: 0o644,
});

const context = (purpose: PlanContext['purpose']): PlanContext => ({
  accounts: new FakeHost({}).accounts(),
  declares: () => false,
  comesLater: () => false,
  isMade: () => false,
  cleared: [],
  written: () => null,
  removes: () => false,
  sensitive: false,
  purpose,
  due: new Set(),
  memo: null,
  mayAppear: false,
  digest: String,
});

/** Returns the text that a step writes; null for another step. */
const writtenText = (step: Step | undefined): string | null =>
  step?.do === 'write-file' && typeof step.content === 'string' ? step.content : null;

/** The decision about a text, and the text behind it. */
async function decided(kind: ResourceKind<object, EditHave>, body: object, text: string, purpose: 'apply' | 'removal') {
  const host = new FakeHost({ paths: { [PATH]: fileOf(text) } });
  const [have] = await kind.read(host, [body], purpose);
  if (have === undefined) throw new Error('nothing was read');
  const decide = purpose === 'removal' ? kind.planRemoval : kind.plan;
  const decision: Decision = decide.call(kind, body, have, context(purpose));
  const [step] = 'steps' in decision ? decision.steps : [];
  return { decision, text: writtenText(step) ?? text, existed: have.isThere };
}

/** Small numbers that are equal in every run. */
function randomOf(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

const PARTS = ['a=1', 'b = 2', '[main]', '[other]', '', '  ', '# a=0', '#a 1', 'a 1', 'export a=1', 'ä', '\tb=3', 'a'];
const ENDS = ['\n', '\r\n'];

function textOf(seed: number): string {
  const random = randomOf(seed);
  const end = ENDS[random(ENDS.length)] ?? '\n';
  const lines = Array.from({ length: random(9) }, () => PARTS[random(PARTS.length)] ?? '');
  const mixed = lines.map((line) => line + (random(8) === 0 ? (ENDS[random(ENDS.length)] ?? '') : end)).join('');
  const text = random(3) === 0 ? mixed.replace(/[\r\n]+$/, '') : mixed;
  return random(10) === 0 ? `\uFEFF${text}` : text;
}

const texts = Array.from({ length: 400 }, (_, seed) => textOf(seed + 1));

const KINDS: readonly (readonly [string, ResourceKind<object, EditHave>, object])[] = [
  ['a line', lineUnix as ResourceKind<object, EditHave>, { path: PATH, line: 'new line' }],
  ['a line that matches', lineUnix as ResourceKind<object, EditHave>, { path: PATH, line: 'c=1', match: '^c' }],
  ['a block', blockUnix as ResourceKind<object, EditHave>, { path: PATH, name: 'web', content: 'x\n\ny\n' }],
  ['a key', settingUnix as ResourceKind<object, EditHave>, { path: PATH, format: 'ini', key: 'c', value: 'new' }],
  [
    'a key of a section',
    settingUnix as ResourceKind<object, EditHave>,
    { path: PATH, format: 'ini', section: 'main', key: 'c', value: 'new' },
  ],
  ['a variable', settingUnix as ResourceKind<object, EditHave>, { path: PATH, format: 'env', key: 'c', value: "it's" }],
  [
    'a word',
    settingUnix as ResourceKind<object, EditHave>,
    { path: PATH, format: 'key-value', key: 'c', value: 'new' },
  ],
];

describe.each(KINDS)('%s', (_, kind, body) => {
  it('is put into a text once, keeps every other line, and comes out again', async () => {
    for (const text of texts) {
      const first = await decided(kind, body, text, 'apply');
      expect(first.decision.action, JSON.stringify(text)).toBe('create');
      expect(first.existed).toBe(false);
      const second = await decided(kind, body, first.text, 'apply');
      expect(second.decision, JSON.stringify(text)).toEqual({ action: 'none' });
      expect(second.existed).toBe(true);
      const removed = await decided(kind, body, first.text, 'removal');
      expect(removed.decision.action).toBe('remove');
      // A section that was added for the key stays, and a missing last line end is there by now.
      const added = text.includes('[main]') ? /[\r\n]*$/ : /(?:\[main\])?[\r\n]*$/;
      const bare = (one: string) =>
        one
          .replace(/[\r\n]*$/, '')
          .replace(added, '')
          .replace(/[\r\n]*$/, '');
      expect(bare(removed.text)).toBe(bare(text));
      expect(await decided(kind, body, removed.text, 'removal')).toMatchObject({ decision: { action: 'none' } });
    }
  });
});

describe('the value of a key', () => {
  it.each(['ini', 'env', 'key-value'])(
    'of %s is replaced with nothing else, and read as it was written',
    async (format) => {
      const values = [
        '1',
        'a b',
        "it's",
        '"quoted"',
        'a"b\'c',
        '$HOME `x`',
        'a\\b',
        '#x',
        'ü',
        format === 'env' ? ' x ' : 'x=y',
        '0',
      ];
      for (const value of values) {
        const body = { path: PATH, format, key: 'k', value };
        for (const text of texts) {
          const own = format === 'key-value' ? 'k  old' : 'k=old';
          const all = linesOf(text);
          const at = all.lines.findIndex(({ text: line }) => line.startsWith('['));
          const before = contentOf(insertAt(all, at < 0 ? all.lines.length : at, [own]));
          const first = await decided(settingUnix as ResourceKind<object, EditHave>, body, before, 'apply');
          expect(first.decision.action, JSON.stringify([value, before])).toBe('update');
          const changed = linesOf(first.text).lines.filter(
            (line, index) => line.text !== linesOf(before).lines[index]?.text,
          );
          expect(changed.length, JSON.stringify([value, before])).toBe(1);
          const second = await decided(settingUnix as ResourceKind<object, EditHave>, body, first.text, 'apply');
          expect(second.decision, JSON.stringify([value, first.text])).toEqual({ action: 'none' });
        }
      }
    },
  );
});

it('keeps every byte of a text that it cuts into lines', () => {
  for (const text of [...texts, '', '\n', '\r', '\r\n', 'a\r\rb\n\r']) expect(contentOf(linesOf(text))).toBe(text);
});

it('takes no longer for lines that are made to be slow', async () => {
  const long = [`k${' '.repeat(300_000)}`, `${' '.repeat(300_000)}=`, 'a'.repeat(300_000), '='.repeat(100_000)].join(
    '\n',
  );
  for (const format of ['ini', 'env', 'key-value']) {
    const body = { path: PATH, format, key: 'other', value: 'x' };
    expect((await decided(settingUnix as ResourceKind<object, EditHave>, body, long, 'apply')).decision.action).toBe(
      'create',
    );
  }
  const body = { path: PATH, line: 'x', match: '^(a+)+$|(=*)*z' };
  expect((await decided(lineUnix as ResourceKind<object, EditHave>, body, long, 'apply')).decision.action).toBe(
    'update',
  );
});
