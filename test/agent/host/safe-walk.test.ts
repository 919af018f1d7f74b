import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bestReach, SafeWalk } from '../../../src/agent/host/safe-walk.js';
import { commitOne, host, isRoot, look, needs, place, write } from '../../support/agent.js';

const EVE = 12_345;

describe('the way to a directory', () => {
  it('follows links that only root could have made, absolute and relative, and through ".."', async () => {
    const directory = place();
    mkdirSync(join(directory, 'real/deep'), { recursive: true });
    mkdirSync(join(directory, 'links'));
    symlinkSync('../real', join(directory, 'links', 'relative'));
    symlinkSync(join(directory, 'real', 'deep'), join(directory, 'links', 'absolute'));
    symlinkSync('relative/deep/./../deep', join(directory, 'links', 'both'));
    expect(await commitOne(write(join(directory, 'links/relative/a'), ''))).toBeNull();
    expect(await commitOne(write(join(directory, 'links/absolute/b'), ''))).toBeNull();
    expect(await commitOne(write(join(directory, 'links/both/c'), ''))).toBeNull();
    expect(readdirSync(join(directory, 'real')).sort()).toEqual(['a', 'deep']);
    expect(readdirSync(join(directory, 'real/deep')).sort()).toEqual(['b', 'c']);
  });

  it('ends at a link to nowhere, to a file, and in a circle', () => {
    const directory = place();
    writeFileSync(join(directory, 'file'), '');
    symlinkSync('nowhere', join(directory, 'dangling'));
    symlinkSync('file', join(directory, 'to-file'));
    symlinkSync('circle', join(directory, 'circle'));
    expect(look(join(directory, 'dangling/x'))).toEqual({
      type: 'absent',
      parent: 'absent',
      dangling: { path: join(directory, 'dangling'), target: 'nowhere' },
    });
    expect(look(join(directory, 'to-file/x'))).toEqual({ type: 'absent', parent: 'not-directory' });
    expect(look(join(directory, 'circle/x'))).toMatchObject({ type: 'unreadable', code: 'unsafe_path' });
  });

  it('follows no link in a directory where others may write', async () => {
    const directory = place();
    mkdirSync(join(directory, 'open'));
    mkdirSync(join(directory, 'secret'));
    symlinkSync('../secret', join(directory, 'open', 'link'));
    for (const mode of [0o777, 0o1777, 0o775]) {
      chmodSync(join(directory, 'open'), mode);
      expect(await commitOne(write(join(directory, 'open/link/f'), ''))).toMatchObject({ code: 'unsafe_path' });
      expect(look(join(directory, 'open/link/f'))).toMatchObject({ type: 'unreadable', code: 'unsafe_path' });
    }
    chmodSync(join(directory, 'open'), 0o755);
    expect(await commitOne(write(join(directory, 'open/link/f'), ''))).toBeNull();
  });

  it("follows no link of another user, nor one in another user's directory", async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    mkdirSync(join(directory, 'target'));
    mkdirSync(join(directory, 'home'));
    symlinkSync(join(directory, 'target'), join(directory, 'eves'));
    lchownSync(join(directory, 'eves'), EVE, EVE);
    symlinkSync(join(directory, 'target'), join(directory, 'home', 'link'));
    chownSync(join(directory, 'home'), EVE, EVE);
    for (const path of ['eves/f', 'home/link/f']) {
      expect(await commitOne(write(join(directory, path), ''))).toMatchObject({
        code: 'unsafe_path',
        message: expect.stringContaining('symbolic link that users other than root could have made'),
      });
    }
    expect(readdirSync(join(directory, 'target'))).toEqual([]);
  });

  it("goes into a user's directory, but not on into another one's", async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    mkdirSync(join(directory, 'home/own'), { recursive: true });
    mkdirSync(join(directory, 'home/roots'));
    chownSync(join(directory, 'home'), EVE, EVE);
    chownSync(join(directory, 'home/own'), EVE, EVE);
    expect(await commitOne(write(join(directory, 'home/own/f'), ''))).toBeNull();
    expect(await commitOne(write(join(directory, 'home/roots/f'), ''))).toEqual({
      code: 'unsafe_path',
      message: `${join(directory, 'home/roots')} leads through a directory of user ${EVE} into one of user 0`,
    });
  });
});

describe('the plain path', () => {
  it('is used only where others cannot put anything else in its place', (context) => {
    needs(context, isRoot && existsSync('/proc/self/fd'), 'root and /proc');
    const directory = place();
    for (const name of ['closed/in', 'sticky/in', 'sticky/eves', 'open/in', 'eve/in']) {
      mkdirSync(join(directory, name), { recursive: true });
    }
    symlinkSync('closed/in', join(directory, 'link'));
    chmodSync(join(directory, 'sticky'), 0o1777);
    chmodSync(join(directory, 'open'), 0o775);
    for (const name of ['eve', 'eve/in', 'sticky/eves']) chownSync(join(directory, name), EVE, EVE);
    const walk = new SafeWalk(bestReach());
    onTestFinished(() => walk.close());
    const isPlain = (name: string): boolean => {
      const found = walk.directory(join(directory, name));
      if (found.kind !== 'directory') throw new Error(found.kind);
      const { at } = found.held;
      expect(at.startsWith('/proc/') || realpathSync(join(directory, name)) === realpathSync(at)).toBe(true);
      return !at.startsWith('/proc/');
    };
    expect(['closed/in', 'sticky/in', 'open', 'link'].map(isPlain)).toEqual([true, true, true, true]);
    expect(['open/in', 'sticky/eves', 'eve', 'eve/in'].map(isPlain)).toEqual([false, false, false, false]);
  });
});

/**
 * Exchanges `swap/dir` for a link to `vault` and back, with pauses that let both sides win: a walk that looks at the
 * path and then uses it escapes about seven times in a thousand rounds.
 */
function attack(directory: string): ChildProcess {
  const child = spawn(
    process.execPath,
    [
      '-e',
      `const fs = require('fs');
       process.chdir(${JSON.stringify(directory)});
       const pause = (microseconds) => {
         const end = performance.now() + (Math.random() * microseconds) / 1000;
         while (performance.now() < end);
       };
       process.send?.('ready');
       for (;;) {
         fs.renameSync('swap/dir', 'swap/aside');
         fs.symlinkSync('../vault', 'swap/dir');
         pause(150);
         fs.unlinkSync('swap/dir');
         fs.renameSync('swap/aside', 'swap/dir');
         pause(300);
       }`,
    ],
    { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe('a directory that is exchanged for a link all the time', () => {
  it('never leads a write, a change of mode, a removal or a look out of it', async (context) => {
    needs(context, existsSync('/proc/self/fd'), '/proc');
    const directory = place();
    for (const name of ['swap', 'swap/dir', 'vault']) mkdirSync(join(directory, name));
    writeFileSync(join(directory, 'vault', 'f'), 'vault');
    chmodSync(join(directory, 'vault', 'f'), 0o600);
    chmodSync(join(directory, 'swap'), 0o777);
    const eve = attack(directory);
    await new Promise((resolve) => eve.once('message', resolve));
    const path = join(directory, 'swap/dir/f');
    const tally = new Map<string, number>();
    for (let round = 0; round < 1_200; round += 1) {
      const [outcome] = await host().commit([write(path, `${round}`, { mode: 0o644 })]);
      const set = await commitOne({ do: 'set-metadata', path, expect: 'file', owner: null, group: null, mode: 0o666 });
      const fact = look(path);
      if (fact.type === 'file' && fact.content.kind === 'text') expect(fact.content.text).not.toBe('vault');
      if (round % 3 === 0) await commitOne({ do: 'remove-file', path });
      for (const code of [outcome?.code ?? 'done', set?.code ?? 'done']) tally.set(code, (tally.get(code) ?? 0) + 1);
    }
    const ended = new Promise((resolve) => eve.once('exit', resolve));
    eve.kill('SIGKILL');
    await ended;
    expect(readFileSync(join(directory, 'vault', 'f'), 'utf8')).toBe('vault');
    expect(look(join(directory, 'vault', 'f'))).toMatchObject({ mode: 0o600 });
    expect(readdirSync(join(directory, 'vault'))).toEqual(['f']);
    // It was a race: both sides won some rounds.
    expect(tally.get('done')).toBeGreaterThan(0);
    expect(tally.get('unsafe_path') ?? 0).toBeGreaterThan(0);
  });
});
