/** Parts of one file on a real file system: secrets are masked in every result, and one part never undoes another. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { apply, drift, plan } from '../../../src/agent/converge.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { clock, content, host, place } from '../../support/agent.js';

const SECRET = 'hunter2-long';
const OLD = 'older-secret';
const span = (start: number) => ({ start, end: start + SECRET.length, secret: 'PW', tag: 'ab12' });

const part = (
  kind: string,
  name: string,
  body: DesiredResource['body'],
  secretAt?: readonly [string, number],
): DesiredResource => ({
  module: 'm',
  kind,
  identity: `${body.path}: ${name}`,
  id: null,
  name: null,
  body,
  ...(secretAt && { taint: { [secretAt[0]]: [span(secretAt[1])] } }),
  after: [],
});

const secretParts = (path: string, more: object = {}): readonly DesiredResource[] => [
  part('setting-unix', 'PW', { path, format: 'env', key: 'PW', value: SECRET, ...more }, ['/value', 0]),
  part('line-unix', '^token ', { path, line: `token ${SECRET}`, match: '^token ' }, ['/line', 6]),
  part('block-unix', 'b', { path, name: 'b', content: `x\npw=${SECRET}\n` }, ['/content', 5]),
];

it('are masked in plans, applies and drift, with the secrets that they replace', async () => {
  const path = join(place(), 'f');
  writeFileSync(path, `a=1\nPW=${OLD}\ntoken ${OLD}\n# BEGIN orch b\nx\npw=${OLD}\n# END orch b\n`, { mode: 0o640 });
  const resources = secretParts(path);
  const planned = await plan(content(resources), host(), { clock });
  const done = await apply(content(resources), host(), { clock });
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(SECRET, OLD));
  const drifted = await drift(content(resources), host(), { clock });
  for (const { results } of [planned, done, drifted]) {
    const shown = JSON.stringify(results);
    expect(shown).not.toContain(SECRET);
    expect(shown).not.toContain(OLD);
    expect(results.map(({ result: { action, sensitive } }) => [action, sensitive])).toEqual(
      resources.map(() => ['update', true]),
    );
  }
  expect(await apply(content(resources), host(), { clock })).toMatchObject({});
  expect(readFileSync(path, 'utf8')).toBe(
    `a=1\nPW=${SECRET}\ntoken ${SECRET}\n# BEGIN orch b\nx\npw=${SECRET}\n# END orch b\n`,
  );
  expect(statSync(path).mode & 0o777).toBe(0o640);
});

it('make a new file private when it holds a secret', async () => {
  const path = join(place(), 'way/f');
  const { results } = await apply(content(secretParts(path, { create: true })), host(), { clock });
  expect(results.map(({ result: { status } }) => status)).toEqual(['changed', 'changed', 'changed']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('compose however many there are, as the plan says', async () => {
  const path = join(place(), 'f');
  writeFileSync(path, '');
  const lines = Array.from({ length: 60 }, (_, at) =>
    part('line-unix', `line ${at}`, { path, line: `line ${at}`, ...(at === 0 ? {} : { after: `^line ${at - 1}$` }) }),
  );
  const planned = await plan(content(lines), host(), { clock });
  expect(planned.results.map(({ result: { action, error } }) => [action, error])).toEqual(
    lines.map(() => ['create', null]),
  );
  const done = await apply(content(lines), host(), { clock });
  expect(done.results.map(({ result: { status } }) => status)).toEqual(lines.map(() => 'changed'));
  expect(readFileSync(path, 'utf8')).toBe(lines.map(({ body }) => `${body.line}\n`).join(''));
});
