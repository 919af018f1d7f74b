/** Checks of files on a real file system: what they print about a secret is not shown, and nothing of the secret is left. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { apply } from '../../../src/agent/converge.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { clock, content, host, place } from '../../support/agent.js';

const SECRET = 'hunter2-long';

const secretFile = (path: string, validate: string): DesiredResource => ({
  module: 'm',
  kind: 'file-unix',
  identity: path,
  id: null,
  name: null,
  body: { path, content: `pw=${SECRET}\n`, validate },
  taint: { '/content': [{ start: 3, end: 3 + SECRET.length, secret: 'PW', tag: 'ab12' }] },
  after: [],
});

it.each([
  ["sh -c 'cat %s; rev %s >&2; exit 3'", 'command_failed'],
  ["sh -c 'cat PATH; rev PATH >&2; exit 3'", 'command_failed'],
])('hide what they print about secrets: %s', async (validate, code) => {
  const path = join(place(), 'f');
  writeFileSync(path, 'old\n', { mode: 0o640 });
  const resource = secretFile(path, validate.replaceAll('PATH', path));
  const { results } = await apply(content([resource]), host(), { clock });
  const shown = JSON.stringify(results);
  expect(results.map(({ result: { error } }) => error)).toEqual([
    {
      code,
      message: `${path} is as before, because validate failed: sh ended with status 3; its output may hold secrets, so it is not shown`,
    },
  ]);
  expect(shown).not.toContain(SECRET);
  expect(shown).not.toContain([...SECRET].reverse().join(''));
  expect(readFileSync(path, 'utf8')).toBe('old\n');
});

it('stop with a cancelled apply, and put back what was there', async () => {
  const path = join(place(), 'f');
  const begun = join(place(), 'begun');
  writeFileSync(path, 'old\n');
  const cancel = new AbortController();
  const validate = `sh -c 'touch ${begun}; exec sleep 1000'`;
  const { signal } = cancel;
  const here = new UnixHost({ platform: 'linux', signal });
  const run = apply(content([{ ...secretFile(path, validate), taint: {} }]), here, { clock, signal });
  while (!existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(readFileSync(path, 'utf8')).toBe(`pw=${SECRET}\n`);
  cancel.abort();
  const { results } = await run;
  expect(results.map(({ result: { error } }) => error?.code)).toEqual(['cancelled']);
  expect(readFileSync(path, 'utf8')).toBe('old\n');
});
