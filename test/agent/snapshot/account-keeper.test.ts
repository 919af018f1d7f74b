/** Accounts saved and restored with the real programs, on a private copy of `/etc`. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isRoot, needs, place, succeeds } from '../../support/agent.js';

const dist = fileURLToPath(new URL('../../../dist/src/agent/', import.meta.url));
const PROGRAMS = ['useradd', 'userdel', 'usermod', 'chpasswd', 'chage', 'groupadd', 'groupdel', 'gpasswd'];

const isPossible = (): boolean =>
  isRoot &&
  existsSync('/etc/shadow') &&
  succeeds('unshare', '-m', 'true') &&
  PROGRAMS.every((program) => succeeds('sh', '-c', `command -v ${program}`));

/** Runs a program in a mount namespace with its own `/etc`; returns the lines of the account there at its end. */
function onCopy(program: string): unknown {
  const root = place();
  const source = `
    import { execFileSync } from 'node:child_process';
    import { readFileSync } from 'node:fs';
    const { userKeeper, groupKeeper } = await import('${dist}snapshot/account-keeper.js');
    const { PathSaver } = await import('${dist}snapshot/path-saver.js');
    const { thisHost } = await import('${dist}host/this-host.js');
    const tools = { host: thisHost({ dataDir: '${root}' }), paths: new PathSaver({ dataDir: '${root}' }) };
    const run = (...words) => execFileSync(words[0], words.slice(1), { stdio: ['ignore', 'ignore', 'inherit'] });
    const password = (line) => execFileSync('chpasswd', ['-e'], { input: line + '\\n' });
    const entry = (file, name) => readFileSync('/etc/' + file, 'utf8').split('\\n').find((line) => line.startsWith(name + ':')) ?? null;
    const all = (name) => ['passwd', 'shadow', 'group'].map((file) => entry(file, name));
    const save = async (keeper, name) => JSON.parse(JSON.stringify((await keeper.save([{ name }], tools))[0]));
    const restore = (keeper, saved) => keeper.restore(saved, 'state', tools, 'update');
    const answer = await (async () => { ${program} })();
    process.stdout.write(JSON.stringify(answer));
  `;
  const script =
    'mount -t tmpfs tmpfs "$1" && cp -a /etc/. "$1" && mount --bind "$1" /etc && exec "$2" --input-type=module -e "$3"';
  const result = spawnSync('unshare', ['-m', 'sh', '-c', script, 'sh', root, process.execPath, source], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(result.stderr).toBe('');
  return JSON.parse(result.stdout);
}

const MAKE = `run('useradd', '-M', '-u', '4711', '-c', 'Some One', '-s', '/bin/sh', '-G', 'users', 'orchtest');
  password('orchtest:$6$abc$hash');
  run('chage', '-d', '19000', '-M', '90', 'orchtest');`;

describe('an account', () => {
  it('returns with its password, ageing and groups after it was removed', (context) => {
    needs(context, isPossible(), 'root, unshare and the programs of shadow');
    const { before, removed, reason, after, users } = onCopy(`${MAKE}
      const before = all('orchtest');
      const saved = await save(userKeeper, 'orchtest');
      run('userdel', 'orchtest');
      const removed = all('orchtest');
      const reason = await restore(userKeeper, saved);
      return { before, removed, reason, after: all('orchtest'), users: entry('group', 'users') };
    `) as Record<string, unknown>;
    expect(removed).toEqual([null, null, null]);
    expect(reason).toBeNull();
    expect(after).toEqual(before);
    expect(users).toMatch(/[:,]orchtest$/);
  });

  it('gets its password back when a crash came between the account and the password', (context) => {
    needs(context, isPossible(), 'root, unshare and the programs of shadow');
    const { before, between, reasons, after } = onCopy(`${MAKE}
      const before = all('orchtest');
      const saved = await save(userKeeper, 'orchtest');
      run('userdel', 'orchtest');
      run('groupadd', '-g', '4711', 'orchtest');
      run('useradd', '-M', '-N', '-u', '4711', '-g', '4711', '-c', 'Some One', '-d', '/home/orchtest', '-s', '/bin/sh', '-G', 'users', 'orchtest');
      const between = entry('shadow', 'orchtest');
      const reasons = [await restore(userKeeper, saved), await restore(userKeeper, saved)];
      return { before, between, reasons, after: all('orchtest') };
    `) as Record<string, unknown>;
    expect(between).toMatch(/^orchtest:!:/);
    expect(reasons).toEqual([null, null]);
    expect(after).toEqual(before);
  });

  it('that the apply has made or changed is gone or as before, and so is a group', (context) => {
    needs(context, isPossible(), 'root, unshare and the programs of shadow');
    const { before, reasons, after, made, groups } = onCopy(`${MAKE}
      run('groupadd', '-g', '4800', 'orchgroup');
      run('gpasswd', '-M', 'orchtest', 'orchgroup');
      const before = all('orchtest');
      const saved = await save(userKeeper, 'orchtest');
      const fresh = await save(userKeeper, 'orchfresh');
      const group = await save(groupKeeper, 'orchgroup');
      const freshGroup = await save(groupKeeper, 'orchmade');
      const was = entry('group', 'orchgroup');
      run('usermod', '-c', 'Other', '-s', '/bin/false', '-G', '', 'orchtest');
      run('useradd', '-M', 'orchfresh');
      run('groupadd', 'orchmade');
      run('groupdel', 'orchgroup');
      const reasons = [
        await restore(groupKeeper, freshGroup),
        await restore(groupKeeper, group),
        await restore(userKeeper, fresh),
        await restore(userKeeper, saved),
      ];
      return { before, reasons, after: all('orchtest'), made: all('orchfresh'), groups: [was, entry('group', 'orchgroup'), entry('group', 'orchmade')] };
    `) as { groups: readonly unknown[] } & Record<string, unknown>;
    expect(reasons).toEqual([null, null, null, null]);
    expect(after).toEqual(before);
    expect(made).toEqual([null, null, null]);
    expect(groups[1]).toBe(groups[0]);
    expect(groups[2]).toBeNull();
  });
});
