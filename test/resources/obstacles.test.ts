/** Which removals have to go before wanted resources of each kind can be made, and which bodies are one thing. */
import { describe, expect, it } from 'vitest';
import { CATALOGUE } from '../../src/resources/catalogue.js';
import type { Obstacle } from '../../src/resources/kind.js';
import { type Facts, FakeHost } from '../support/resources.js';

const address = (kind: string, identity: string) => ({ module: 'm', kind, identity });
const gone = (kind: string, identity: string): Obstacle => ({ ...address(kind, identity), body: { name: identity } });

interface Want {
  readonly body: Readonly<Record<string, unknown>>;
  readonly after?: string;
  readonly isNew?: boolean;
}

async function obstacles(kind: string, facts: Facts, want: Want, removals: readonly Obstacle[]) {
  const { body, after, isNew = true } = want;
  const changes = after === undefined ? [] : [{ field: 'running', before: null, after }];
  const needed = { ...address(kind, 'new'), body, changes, isNew };
  const found = await CATALOGUE.get(kind)?.obstacles?.(new FakeHost(facts), [needed], removals);
  return found?.map(({ kind: of, identity }) => `${of} ${identity}`);
}

const things = async (kind: string, facts: Facts, ...bodies: readonly Want['body'][]) =>
  CATALOGUE.get(kind)?.thingsOf?.(new FakeHost(facts), bodies);

describe('what stands in the way', () => {
  const accounts = { users: { old: 5000, other: 5001 }, groups: { old: 5000, team: 6000 } };

  it('is the user with the wanted number', async () => {
    const removals = [gone('user-unix', 'old'), gone('user-unix', 'other'), gone('group-unix', 'old')];
    expect(await obstacles('user-unix', accounts, { body: { name: 'new', uid: 5000 } }, removals)).toEqual([
      'user-unix old',
    ]);
    expect(await obstacles('user-unix', accounts, { body: { name: 'new' } }, removals)).toEqual([]);
  });

  it('is the group with the wanted number, and the user that takes it along', async () => {
    const removals = [gone('user-unix', 'old'), gone('group-unix', 'old'), gone('group-unix', 'team')];
    expect(await obstacles('group-unix', accounts, { body: { name: 'new', gid: 5000 } }, removals)).toEqual([
      'user-unix old',
      'group-unix old',
    ]);
  });

  it.each(['service-systemd', 'service-launchd', 'service-windows'])('is a %s before one starts', async (kind) => {
    const removals = [gone(kind, 'old'), gone('script', 'old')];
    const after = kind === 'service-windows' ? 'true' : 'running';
    expect(await obstacles(kind, {}, { body: { name: 'new' }, after }, removals)).toEqual([`${kind} old`]);
    expect(await obstacles(kind, {}, { body: { name: 'new' }, after: 'stopped' }, removals)).toEqual([]);
  });

  it('is the script of the module before one that has not run here', async () => {
    const removals = [gone('script', 'old'), { ...gone('script', 'far'), module: 'another' }];
    expect(await obstacles('script', {}, { body: {} }, removals)).toEqual(['script old']);
    expect(await obstacles('script', {}, { body: {}, isNew: false }, removals)).toEqual([]);
  });

  it('is the package that apt would remove for the wanted one', async () => {
    const commands = { 'apt-get install -s -q --allow-downgrades new': 'Remv old [1]\nInst new (2)\nConf new (2)\n' };
    const removals = [gone('package-apt', 'old'), gone('package-apt', 'other')];
    expect(await obstacles('package-apt', { commands }, { body: { name: 'new' } }, removals)).toEqual([
      'package-apt old',
    ]);
    expect(await obstacles('package-apt', {}, { body: { name: 'new' } }, [gone('script', 'old')])).toEqual([]);
  });
});

describe('one thing', () => {
  it('is a package with and without its architecture, asked only when a name is there twice', async () => {
    const commands = {
      'dpkg --print-architecture': 'amd64\n',
      [`dpkg-query --show --showformat=${['Package', 'Architecture', 'Version', 'db:Status-Want', 'db:Status-Eflag', 'db:Status-Status'].map((field) => `\${${field}}`).join('|')}\\n libc6`]:
        'libc6|amd64|2|install|ok|installed\nlibc6|i386|2|install|ok|installed\n',
    };
    const names = ['libc6', 'libc6:amd64', 'libc6:i386', 'bash'].map((name) => ({ name }));
    expect(await things('package-apt', { commands }, ...names)).toEqual([
      'libc6:amd64',
      'libc6:amd64',
      'libc6:i386',
      null,
    ]);
    expect(await things('package-apt', {}, { name: 'libc6' }, { name: 'bash' })).toEqual([null, null]);
  });

  it('is a unit and its alias', async () => {
    const commands = {
      'systemctl show --property=Id -- ssh.service sshd.service': 'Id=ssh.service\n\nId=ssh.service\n',
    };
    expect(await things('service-systemd', { commands }, { name: 'ssh' }, { name: 'sshd' })).toEqual([
      'ssh.service',
      'ssh.service',
    ]);
    expect(await things('service-systemd', {}, { name: 'ssh' })).toEqual([null]);
  });

  it('is a number of users or groups, and a script by its texts', async () => {
    expect(await things('user-unix', {}, { name: 'a', uid: 1 }, { name: 'b' })).toEqual(['uid 1', null]);
    expect(await things('group-unix', {}, { name: 'a', gid: 1 }, { name: 'b' })).toEqual(['gid 1', null]);
    const text = { program: 'sh', apply: 'true' };
    const [one, same, other] =
      (await things('script', {}, text, { ...text, check: null }, { ...text, undo: 'x' })) ?? [];
    expect(one).toBe(same);
    expect(one).not.toBe(other);
  });
});
