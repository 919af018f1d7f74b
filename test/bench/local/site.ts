/** Small files in nested directories, declared in the language of each measured program. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { bareEnvironment } from '../guard.js';
import { CFENGINE, cfengineText, findProgram, PUPPET, prepareCfengine } from '../peers.js';
import { type Bench, OURS } from '../row.js';
import { runProgram, type Taken } from '../run-program.js';

/** Bytes in each file. */
const SIZE = 200;
const IN_MODULE = 1_000;
/** Maximum files that Puppet is measured with, because it takes seconds for a hundred. */
const MOST_FOR_PUPPET = 1_000;
const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const LIMITS = fileURLToPath(new URL('../bench/limits/', import.meta.url));

export const NODE = 'Node loop';
export const C = 'C loop';

export type Verb = 'apply' | 'plan';

interface WantedFile {
  readonly path: string;
  readonly content: string;
}

interface Program {
  readonly env: NodeJS.ProcessEnv;
  /** Returns its command line. A loop writes when `isFirst`, and only compares otherwise. */
  words(verb: Verb, isFirst: boolean): readonly string[];
  /** True for a program that takes seconds and runs in fewer rounds. */
  readonly isSlow?: boolean;
}

export class Site {
  readonly directory = mkdtempSync(join(tmpdir(), 'site-'));
  private readonly files: readonly WantedFile[];
  private readonly programs: ReadonlyMap<string, Program>;
  private cleared = 0;

  constructor(count: number, bench: Bench) {
    this.files = wantedFiles(this.directory, count);
    this.programs = programsFor(this.directory, this.files, bench);
  }

  get names(): readonly string[] {
    return [...this.programs.keys()];
  }

  isSlow(name: string): boolean {
    return this.program(name).isSlow === true;
  }

  run(name: string, verb: Verb, { isFirst = false } = {}): Promise<Taken> {
    const program = this.program(name);
    return runProgram(program.words(verb, isFirst), { env: program.env });
  }

  /** Applies once, so that the files exist and `orch` has stored them as applied. */
  async settle(): Promise<void> {
    await this.run(OURS, 'apply');
  }

  /**
   * Puts the files and the data directory of `orch` aside, and waits until everything is on the disk. They are not deleted,
   * because ext4 takes many times as long to create files right after it has deleted as many.
   */
  clear(): void {
    this.cleared += 1;
    const aside = join(this.directory, `cleared-${this.cleared}`);
    mkdirSync(aside);
    for (const path of [treeOf(this.directory), dataDirectory(this.directory)]) {
      if (existsSync(path)) renameSync(path, join(aside, basename(path)));
    }
    makeParents(this.files);
    spawnSync('sync');
  }

  /** Returns the command line and environment of a program, for measuring its process. */
  commandOf(name: string, verb: Verb): { readonly words: readonly string[]; readonly env: NodeJS.ProcessEnv } {
    const { words, env } = this.program(name);
    return { words: words(verb, false), env };
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  private program(name: string): Program {
    const program = this.programs.get(name);
    if (program === undefined) throw new Error(`${name} does not run here`);
    return program;
  }
}

const treeOf = (directory: string): string => join(directory, 'tree');

const dataDirectory = (directory: string): string => join(directory, 'data');

/** Returns the files, and makes their directories. */
function wantedFiles(directory: string, count: number): readonly WantedFile[] {
  const files = Array.from({ length: count }, (_, index) => ({
    path: join(treeOf(directory), `${index % 10}`, `${Math.floor(index / 10) % 10}`, `file-${index}`),
    content: `${index} `
      .repeat(SIZE)
      .slice(0, SIZE - 1)
      .concat('\n'),
  }));
  makeParents(files);
  return files;
}

function makeParents(files: readonly WantedFile[]): void {
  for (const parent of new Set(files.map(({ path }) => dirname(path)))) mkdirSync(parent, { recursive: true });
}

function programsFor(directory: string, files: readonly WantedFile[], bench: Bench): ReadonlyMap<string, Program> {
  const env = bareEnvironment(directory);
  const programs = new Map<string, Program>([
    [OURS, orchOf(directory, files, env)],
    [NODE, nodeLoop(directory, files, env)],
  ]);
  const loop = cLoop(directory, env, bench);
  if (loop !== null) programs.set(C, loop);
  if (!bench.peers) return programs;
  const cfengine = cfengineOf(directory, files, { env, bench });
  if (cfengine !== null) programs.set(CFENGINE, cfengine);
  const puppet = files.length > MOST_FOR_PUPPET ? null : puppetOf(directory, files, { env, bench });
  if (puppet !== null) programs.set(PUPPET, puppet);
  return programs;
}

function orchOf(directory: string, files: readonly WantedFile[], env: NodeJS.ProcessEnv): Program {
  const modules = join(directory, 'modules');
  mkdirSync(modules);
  for (let first = 0; first < files.length; first += IN_MODULE) {
    const name = `bench-${first / IN_MODULE}`;
    const resources = files
      .slice(first, first + IN_MODULE)
      .map(({ path, content }) => ({ resource: { 'file-unix': { path, content } } }));
    const text = stringify({ name, supports: [{ platform: process.platform }], resources });
    writeFileSync(join(modules, `${name}.orch.yaml`), text);
  }
  const common = ['--local', '-f', modules, '--data-dir', dataDirectory(directory)];
  return {
    env,
    words: (verb) => [process.execPath, ORCH, verb, ...common, ...(verb === 'apply' ? ['--yes'] : [])],
  };
}

/** The limit of any program in Node. */
function nodeLoop(directory: string, files: readonly WantedFile[], env: NodeJS.ProcessEnv): Program {
  writeFileSync(listOf(directory), files.map(({ path, content }) => `${path}\0${content}\0`).join(''));
  return {
    env,
    words: (_, isFirst) => [
      process.execPath,
      join(LIMITS, 'files.mjs'),
      isFirst ? 'write' : 'check',
      listOf(directory),
    ],
  };
}

const listOf = (directory: string): string => join(directory, 'list');

/** The limit of any program. Null without a compiler. */
function cLoop(directory: string, env: NodeJS.ProcessEnv, bench: Bench): Program | null {
  const compiler = findProgram('cc', bench);
  if (compiler === null) return null;
  const program = join(directory, 'files');
  const { status, stderr } = spawnSync(compiler, ['-O2', '-o', program, join(LIMITS, 'files.c')]);
  if (status !== 0) {
    bench.missing(C, `cc ended with ${status}: ${stderr.toString().split('\n')[0]}`);
    return null;
  }
  return { env, words: (_, isFirst) => [program, isFirst ? 'write' : 'check', listOf(directory)] };
}

interface PeerOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly bench: Bench;
}

function cfengineOf(directory: string, files: readonly WantedFile[], { env, bench }: PeerOptions): Program | null {
  const program = findProgram(CFENGINE, bench);
  if (program === null) return null;
  const promises = files.map(
    ({ path, content }) => `    ${cfengineText(path)} create => "true", content => ${cfengineText(content)};`,
  );
  const policy = join(directory, 'bench.cf');
  writeFileSync(policy, ['bundle agent main', '{', '  files:', ...promises, '}', ''].join('\n'), { mode: 0o600 });
  return {
    env: { ...env, ...prepareCfengine(program, join(directory, 'cfengine')) },
    words: (verb) => [program, '--no-lock', ...(verb === 'plan' ? ['--dry-run'] : []), '--file', policy],
  };
}

function puppetOf(directory: string, files: readonly WantedFile[], { env, bench }: PeerOptions): Program | null {
  const program = findProgram(PUPPET, bench);
  if (program === null) return null;
  const manifest = join(directory, 'bench.pp');
  const declared = files.map(
    ({ path, content }) => `file { '${path}': ensure => file, content => ${JSON.stringify(content)} }`,
  );
  writeFileSync(manifest, `${declared.join('\n')}\n`);
  const places = ['--confdir', join(directory, 'puppet/etc'), '--vardir', join(directory, 'puppet/var')];
  return {
    env,
    isSlow: true,
    words: (verb) => [program, 'apply', ...places, ...(verb === 'plan' ? ['--noop'] : []), manifest],
  };
}
