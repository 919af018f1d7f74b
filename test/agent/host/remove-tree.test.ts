/** A tree goes with everything in it, and nothing outside of it: no target of a link, nothing that is mounted in it. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { removeTree } from '../../../src/agent/host/remove-tree.js';
import { bestReach, reachByPath } from '../../../src/agent/host/safe-walk.js';
import { place } from '../../support/agent.js';

const ways = [
  ['by descriptors', bestReach()],
  ['by paths', reachByPath],
] as const;

describe.each(ways)('a tree reached %s', (_, reach) => {
  function tree(): { readonly root: string; readonly top: string } {
    const root = place();
    const top = join(root, 'top');
    mkdirSync(join(top, 'a/b'), { recursive: true });
    mkdirSync(join(root, 'outside'));
    writeFileSync(join(root, 'outside/kept'), '');
    for (const name of ['x', 'a/y', 'a/b/z']) writeFileSync(join(top, name), '');
    symlinkSync(join(root, 'outside'), join(top, 'a/link'));
    return { root, top };
  }

  it('goes as a whole, and the targets of its links stay', () => {
    const { root, top } = tree();
    removeTree(top, top, reach);
    expect(readdirSync(root)).toEqual(['outside']);
    expect(existsSync(join(root, 'outside/kept'))).toBe(true);
    removeTree(top, top, reach);
  });

  it('is refused for a link to a directory', () => {
    const { root, top } = tree();
    symlinkSync(top, join(root, 'link'));
    expect(() => removeTree('/link', join(root, 'link'), reach)).toThrow('/link is no longer a directory');
    expect(existsSync(join(top, 'a/b/z'))).toBe(true);
  });

  it('keeps what more than 50,000 entries leave, and says so', () => {
    const { top } = tree();
    for (let index = 0; index < 50_010; index += 1) writeFileSync(join(top, `f${index}`), '');
    expect(() => removeTree('/top', top, reach)).toThrow(
      '/top held more than 50000 entries, and so many are removed; apply again to remove the rest',
    );
    expect(existsSync(top)).toBe(true);
    removeTree('/top', top, reach);
    expect(existsSync(top)).toBe(false);
  });

  it('is refused when it is deeper than can be held', () => {
    const { top } = tree();
    mkdirSync(join(top, 'd/'.repeat(300)), { recursive: true });
    expect(() => removeTree('/top', top, reach)).toThrow('/top has more than 256 levels of directories');
  });
});

const isRoot = process.geteuid?.() === 0 && process.platform === 'linux';
describe.skipIf(!isRoot)(`a tree with a mount in it${isRoot ? '' : ' (skipped: needs root on Linux)'}`, () => {
  it.each([
    ['a file system', (at: string) => ['-t', 'tmpfs', 'tmpfs', at]],
    ['a directory of the same file system', (at: string, other: string) => ['--bind', other, at]],
  ])('is refused before anything goes: %s', (_, argv) => {
    const top = place();
    const other = place();
    writeFileSync(join(top, 'first'), '');
    mkdirSync(join(top, 'z/mounted'), { recursive: true });
    writeFileSync(join(other, 'kept'), '');
    const at = join(top, 'z/mounted');
    const mounted = spawnSync('mount', argv(at, other), { encoding: 'utf8' });
    expect(mounted).toMatchObject({ status: 0 });
    onTestFinished(() => void spawnSync('umount', [at]));
    expect(() => removeTree('/top', top, bestReach())).toThrow(`something is mounted at ${at}; unmount it`);
    expect(existsSync(join(top, 'first'))).toBe(true);
    expect(existsSync(join(other, 'kept'))).toBe(true);
  });
});
