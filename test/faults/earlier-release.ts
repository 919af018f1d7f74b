/** Earlier releases of `orch` from the history: which commit is one, and its build. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Everything that the built command consists of. */
const PRODUCT = ['src', 'daemon', 'bin', 'scripts/bundle.mjs', 'scripts/bundle', 'package.json', 'package-lock.json'];

const git = (...args: readonly string[]) => spawnSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' });

/** A commit, or the reason why the history here does not have it. */
export type Found = { readonly commit: string } | { readonly missing: string };

/**
 * Finds the newest commit of the first-parent history whose product differs from this tree's. A shallow clone may end
 * before it.
 */
export function previousRelease(): Found {
  const head = git('rev-parse', '--verify', 'HEAD');
  if (head.status !== 0)
    return { missing: `git finds no history here: ${(head.stderr ?? '').trim() || 'it is not installed'}` };
  if (git('diff', '--quiet', 'HEAD', '--', ...PRODUCT).status === 1) return { commit: head.stdout.trim() };
  const newest = git('log', '-1', '--first-parent', '--format=%H', '--', ...PRODUCT).stdout.trim();
  const before = git('rev-parse', '--verify', `${newest}^1`);
  if (before.status === 0) return { commit: before.stdout.trim() };
  return { missing: `the history here ends at ${newest.slice(0, 7)}, as in a shallow clone` };
}

/** Finds a commit by its name. */
export function releaseNamed(name: string): Found {
  const { status, stdout } = git('rev-parse', '--verify', `${name}^{commit}`);
  return status === 0 ? { commit: stdout.trim() } : { missing: `the history here lacks ${name}` };
}

export interface Built {
  /** Path of the built command. */
  readonly program: string;
  /** Version of the agent link's protocol. */
  readonly protocol: number;
}

/** Builds a commit below `.cache/`, unless the directory of that name holds its build already. */
export async function buildRelease(commit: string, name: string): Promise<Built> {
  const directory = join(ROOT, '.cache', `${name}-${process.version}`);
  const stamp = join(directory, 'built');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== commit) {
    build(commit, directory);
    writeFileSync(stamp, commit);
  }
  const { PROTOCOL_VERSION } = await import(pathToFileURL(join(directory, 'dist/src/kernel/version.js')).href);
  return { program: join(directory, 'dist/orch/orch.js'), protocol: PROTOCOL_VERSION };
}

function build(commit: string, directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const archive = execFileSync('git', ['-C', ROOT, 'archive', commit], { maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
  // Linked file by file: the bundle names modules by their place in the tree.
  execFileSync('cp', ['-al', join(ROOT, 'node_modules'), directory]);
  const lock = (root: string) => readFileSync(join(root, 'package-lock.json'), 'utf8');
  if (lock(directory) !== lock(ROOT)) {
    // Adds the libraries that only the earlier release has; the others, with what was compiled for them, stay as they are.
    rmSync(join(directory, 'node_modules/.package-lock.json'), { force: true });
    const install = ['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund'];
    execFileSync('npm', install, { cwd: directory });
  }
  leaveTestsOut(join(directory, 'tsconfig.json'));
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Removes the tests from the build, because their types take a third of its time. */
function leaveTestsOut(file: string): void {
  const config = JSON.parse(readFileSync(file, 'utf8'));
  const references = config.references.filter(({ path }: { readonly path: string }) => path !== './test');
  writeFileSync(file, JSON.stringify({ ...config, references }));
}
