/** A disk of a program under test: its own file system, which can be full, fail, turn read-only or lose what was not synced. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isInstalled } from '../support/is-installed.js';
import type { Random } from './random.js';

/** Why these tests cannot run on this machine; null when they can. */
export const missing: string | null = ((): string | null => {
  if (process.platform !== 'linux') return 'not Linux';
  if (process.getuid?.() !== 0) return 'not root, so that no file system can be mounted';
  return isInstalled('gcc') ? null : 'gcc not installed';
})();

/** Compiles the library that fails calls of a program; returns its path. */
export function compileFaults(directory: string): string {
  const library = join(directory, 'disk.so');
  const source = fileURLToPath(new URL('disk.c', import.meta.url));
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-w', '-o', library, source, '-ldl'], { stdio: 'pipe' });
  return library;
}

/** A tmpfs at `root`, and the environment that puts the faults between a program and it. */
export class Disk {
  readonly root: string;
  private readonly beside: string;
  private readonly library: string;

  constructor(root: string, library: string, megabytes: number) {
    this.root = root;
    this.beside = `${root}.faults`;
    this.library = library;
    mkdirSync(root, { recursive: true });
    mkdirSync(this.images, { recursive: true });
    writeFileSync(this.control, '\0');
    this.mount(megabytes);
  }

  /** For each start of a program on this disk; `keepsImages` makes every sync slower and allows a power cut. */
  env({ keepsImages = false } = {}): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: this.library,
      ORCH_FAULT_ROOT: this.root,
      ORCH_FAULT_CONTROL: this.control,
      ...(keepsImages ? { ORCH_FAULT_IMAGES: this.images } : {}),
    };
  }

  mount(megabytes = 128): void {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'orch-faults', this.root]);
  }

  unmount(): void {
    execFileSync('umount', ['--lazy', this.root]);
  }

  /** Leaves an empty directory in its place; returns a function that restores it. */
  takeAway(): () => void {
    const aside = join(this.beside, 'aside');
    mkdirSync(aside, { recursive: true });
    execFileSync('mount', ['--bind', this.root, aside]);
    execFileSync('umount', [this.root]);
    return () => {
      execFileSync('mount', ['--bind', aside, this.root]);
      execFileSync('umount', [aside]);
    };
  }

  dispose(): void {
    this.unmount();
    rmSync(this.beside, { recursive: true, force: true });
  }

  /** Fills it to the last block. */
  fill(): void {
    const ballast = openSync(this.ballast, 'w');
    const block = Buffer.alloc(65_536);
    for (let size = block.length; size >= 1; ) {
      try {
        if (writeSync(ballast, block, 0, size) < size) size = Math.floor(size / 2);
      } catch {
        size = Math.floor(size / 2);
      }
    }
    closeSync(ballast);
  }

  free(): void {
    rmSync(this.ballast, { force: true });
  }

  get isFull(): boolean {
    return statfsSync(this.root).bavail === 0;
  }

  failSyncs(): void {
    this.set('e');
  }

  turnReadOnly(): void {
    this.set('r');
  }

  heal(): void {
    this.set('\0');
    this.free();
  }

  /** From now on the present contents count as synced. Call it while no program runs here. */
  keepAll(): void {
    rmSync(this.images, { recursive: true, force: true });
    mkdirSync(this.images, { recursive: true });
    const lines = filesBelow(this.root).map((path) => {
      const { ino, mode } = statSync(path);
      copyFileSync(path, join(this.images, String(ino)));
      return `F ${ino} ${(mode & 0o7777).toString(8)} ${path}\n`;
    });
    writeFileSync(join(this.images, 'names'), lines.join(''));
  }

  /**
   * Leaves what a power cut may leave. Synced bytes survive. Of each sector that was written since, and of each name that was made,
   * replaced or removed since, the old state or the new one survives, at random. Call it when the programs were killed.
   * @param whole directory below the root whose files keep exactly what was synced
   */
  cutPower(random: Random, whole: string): void {
    const durable = durableNames(readFileSync(join(this.images, 'names'), 'utf8'));
    const all = new Map(filesBelow(this.root).map((path) => [path, fileAt(path)]));
    const isWhole = (path: string) => path.startsWith(`${join(this.root, whole)}/`);
    const present = new Map([...all].filter(([path]) => !isWhole(path)));
    const kept = new Map<string, { readonly bytes: Buffer; readonly mode: number }>();
    for (const [path, { inode, mode }] of durable) {
      const image = join(this.images, inode);
      const synced = existsSync(image) ? readFileSync(image) : Buffer.alloc(0);
      const now = [...present.values()].find((file) => file.inode === inode);
      kept.set(path, { bytes: now === undefined ? synced : torn(synced, now.bytes, random), mode });
    }
    for (const [path, { inode, mode, bytes }] of present) {
      if (durable.get(path)?.inode === inode || random.next() < 0.5) continue;
      // A rename takes the name under which the file was synced.
      const former = [...durable].find(([, entry]) => entry.inode === inode)?.[0];
      const image = join(this.images, inode);
      kept.set(path, (former && kept.get(former)) || { bytes: torn(readIfThere(image), bytes, random), mode });
      if (former !== undefined) kept.delete(former);
    }
    for (const path of durable.keys()) {
      if (!present.has(path) && !isWhole(path) && random.next() < 0.5) kept.delete(path);
    }
    for (const path of all.keys()) rmSync(path);
    for (const [path, { bytes, mode }] of kept) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes);
      chmodSync(path, mode);
    }
    this.keepAll();
  }

  /** Empties it and copies a directory into it. Call it while no program runs here. */
  replaceWith(directory: string): void {
    for (const entry of readdirSync(this.root)) rmSync(join(this.root, entry), { recursive: true });
    execFileSync('cp', ['-a', `${directory}/.`, this.root]);
    rmSync(directory, { recursive: true });
  }

  private set(fault: string): void {
    // In place: programs have the first byte in their memory.
    const file = openSync(this.control, 'r+');
    writeSync(file, fault, 0);
    closeSync(file);
  }

  private get control(): string {
    return join(this.beside, 'control');
  }

  private get images(): string {
    return join(this.beside, 'images');
  }

  private get ballast(): string {
    return join(this.root, 'ballast');
  }
}

/** Bytes that a disk writes whole or not at all. */
const SECTOR = 512;

/** Returns `synced` with a random part of the sectors of `now`, as far as the file reaches then. */
function torn(synced: Buffer, now: Buffer, random: Random): Buffer {
  const length = random.next() < 0.5 ? synced.length : now.length;
  const result = Buffer.alloc(length);
  synced.copy(result);
  for (let at = 0; at < length; at += SECTOR) {
    if (random.next() < 0.5) now.copy(result, at, at, Math.min(at + SECTOR, length));
  }
  return result;
}

const readIfThere = (path: string): Buffer => (existsSync(path) ? readFileSync(path) : Buffer.alloc(0));

function fileAt(path: string) {
  const { ino, mode } = statSync(path);
  return { inode: String(ino), mode: mode & 0o7777, bytes: readFileSync(path) };
}

interface Entry {
  readonly inode: string;
  readonly mode: number;
}

/** Reads the log of syncs that `disk.c` describes: which names last, with the inode that each stands for. */
function durableNames(log: string): Map<string, Entry> {
  const names = new Map<string, Entry>();
  let directory = '';
  for (const line of log.split('\n')) {
    const [kind = '', first = '', mode = '', ...rest] = line.split(' ');
    if (kind === 'F') names.set(rest.join(' '), { inode: first, mode: Number.parseInt(mode, 8) });
    if (kind === 'E') names.set(join(directory, rest.join(' ')), { inode: first, mode: Number.parseInt(mode, 8) });
    if (kind === 'D') {
      directory = line.slice(2);
      for (const path of names.keys()) if (dirname(path) === directory) names.delete(path);
    }
  }
  return names;
}

const filesBelow = (root: string): readonly string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
