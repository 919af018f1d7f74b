/** Carries out file steps on Linux and macOS: durable before they are reported, and every file is whole at every moment. */

import { closeSync, constants, fsync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { assertNever, Fault, systemCodeOf } from '../../kernel/fault.js';
import type { Accounts, FileStep, StepOutcome } from '../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix/unix-path.js';
import { removeUnpacked } from './archive/remove-unpacked.js';
import { unpack } from './archive/unpack.js';
import type { UnpackedRecords } from './archive/unpacked-records.js';
import { type AccessLists, keepAttributes } from './attributes.js';
import {
  type MadeParent,
  makeDirectory,
  makeLink,
  makeParents,
  removeDirectory,
  removeFile,
  type StepLocation,
  setMetadata,
} from './in-place.js';
import { reached, refusalOfStep } from './path-refusal.js';
import { removeTree } from './remove-tree.js';
import { type HeldEntry, type Reach, SafeWalk } from './safe-walk.js';
import type { BroughtFiles } from './source-files.js';
import { StagedFile } from './staged-file.js';
import { Staging } from './staging.js';
import type { Temporaries } from './temporaries.js';

interface Machine {
  readonly accounts: Accounts;
  readonly temporaries: Temporaries;
  readonly reach: Reach;
  readonly lists: AccessLists;
  /** Files beside modules, which steps take as content. */
  readonly files: BroughtFiles;
  /** What was unpacked from archives. */
  readonly records: UnpackedRecords;
  readonly signal: AbortSignal | undefined;
}

const sync = promisify(fsync);

/** Returns the outcomes in the order of the steps. */
export async function commit(steps: readonly FileStep[], machine: Machine): Promise<readonly StepOutcome[]> {
  const missing = await machine.files.bringFor(steps);
  const group = new Group(machine);
  try {
    const tasks = steps.map((step) => new Task(step, missing.get(step) ?? null));
    group.makeRooms(steps);
    for (const task of tasks) await carryOutArchive(task, machine);
    for (const task of tasks) task.attempt(() => group.stage(task));
    await group.prepare(tasks);
    for (const task of tasks) task.attempt(() => group.perform(task));
    group.clearStaging();
    await group.makeDurable(tasks);
    return tasks.map((task) => task.outcome);
  } finally {
    group.close();
  }
}

/** Carries out a step with an archive, which makes its changes durable itself. */
async function carryOutArchive(task: Task, machine: Machine): Promise<void> {
  const { step } = task;
  if (task.outcome !== null) return;
  try {
    if (step.do === 'unpack') await unpack(step, machine);
    else if (step.do === 'remove-unpacked') removeUnpacked(step, machine);
  } catch (error) {
    machine.signal?.throwIfAborted();
    task.fail(error);
  }
}

/** One step and its outcome. */
class Task {
  readonly step: FileStep;
  outcome: StepOutcome;
  staged: StagedFile | null = null;
  /** Directory to sync for the step. */
  directory: HeldEntry | null = null;
  /** Open descriptor of a file or directory changed in place, to be synced. */
  changed: number | null = null;

  /** @param refusal reason why the step cannot be done; null for none yet */
  constructor(step: FileStep, refusal: StepOutcome) {
    this.step = step;
    this.outcome = refusal;
  }

  /** Runs one part of the step unless an earlier part has failed. */
  attempt(work: () => void): void {
    if (this.outcome !== null) return;
    try {
      work();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.outcome = refusalOfStep(error, this.step);
  }
}

class Group {
  private readonly machine: Machine;
  private readonly walk: SafeWalk;
  private readonly staging: Staging;
  private readonly staged: StagedFile[] = [];
  private readonly open: number[] = [];
  /** Missing parent directories that were made. */
  private readonly madeParents: MadeParent[] = [];

  constructor(machine: Machine) {
    this.machine = machine;
    this.walk = new SafeWalk(machine.reach);
    this.staging = new Staging({ ...machine, walk: this.walk });
  }

  /** Prepares the directories that something new comes into, together. The missing ones are made with the steps. */
  makeRooms(steps: readonly FileStep[]): void {
    const destinations = steps.flatMap(({ do: verb, path }) => {
      if (!MAKES.has(verb) || problemOfUnixPath(path) !== null) return [];
      const place = this.walk.directory(parentOf(path));
      return place.kind === 'directory' ? [{ directory: place.held, path }] : [];
    });
    this.staging.prepare(destinations);
  }

  /** Writes the temporary file of a `write-file` step; other steps have nothing to stage. */
  stage(task: Task): void {
    const { step } = task;
    if (step.do !== 'write-file') return;
    const { accounts, reach, files } = this.machine;
    task.staged = new StagedFile(step, this.spotOf(step), { accounts, reach, files, staging: this.staging });
    this.staged.push(task.staged);
  }

  /** Completes the staged files and syncs them, all at once. */
  async prepare(tasks: readonly Task[]): Promise<void> {
    const replacements = tasks.map((task) => task.staged?.replacement() ?? null);
    await keepAttributes(replacements.filter((replacement) => replacement !== null));
    for (const task of tasks) task.attempt(() => task.staged?.setMode());
    await Promise.all(
      tasks.map(async (task) => {
        if (task.outcome === null) await task.staged?.sync().catch((error: unknown) => task.fail(error));
      }),
    );
  }

  perform(task: Task): void {
    const { step } = task;
    if (step.do === 'unpack' || step.do === 'remove-unpacked') return;
    const spot = this.spotOf(step);
    task.directory = spot.directory;
    switch (step.do) {
      case 'write-file':
        task.staged?.rename();
        return;
      case 'make-directory':
        task.changed = this.keep(makeDirectory(step, spot, { staging: this.staging, accounts: this.machine.accounts }));
        return;
      case 'make-link':
        makeLink(step, spot, { staging: this.staging, accounts: this.machine.accounts });
        return;
      case 'set-metadata':
        task.directory = null;
        task.changed = this.keep(setMetadata(step, spot, this.machine));
        return;
      case 'remove-file':
        removeFile(step, spot.at);
        return;
      case 'remove-directory':
        removeDirectory(spot.at);
        return;
      case 'remove-tree':
        removeTree(step.path, spot.at, this.machine.reach);
        return;
      default:
        assertNever(step);
    }
  }

  /** Syncs in-place changes and each directory once; a step whose directory cannot be synced has failed. */
  async makeDurable(tasks: readonly Task[]): Promise<void> {
    const done = tasks.filter((task) => task.outcome === null);
    const directories = new Map<HeldEntry, Promise<void>>();
    for (const directory of [
      ...done.map((task) => task.directory),
      ...this.madeParents.map((part) => part.directory),
    ]) {
      if (directory && !directories.has(directory)) directories.set(directory, syncDirectory(directory));
    }
    const way = Promise.all(
      this.madeParents.map(async ({ descriptor, directory }) => {
        await sync(descriptor);
        await directories.get(directory);
      }),
    );
    // Handled by the tasks that need it.
    way.catch(() => undefined);
    await Promise.all(
      done.map(async (task) => {
        try {
          if (task.changed !== null) await sync(task.changed);
          if (task.directory) await directories.get(task.directory);
          if (makesWay(task.step)) await way;
        } catch (error) {
          task.fail(error);
        }
      }),
    );
  }

  /** Removes what did not come to its place, before the directories are synced. */
  clearStaging(): void {
    this.staging.clear();
  }

  close(): void {
    this.staging.clear();
    for (const staged of this.staged) staged.close();
    for (const descriptor of this.open) closeSync(descriptor);
    this.walk.close();
  }

  private keep(descriptor: number | null): number | null {
    if (descriptor !== null) this.open.push(descriptor);
    return descriptor;
  }

  private spotOf(step: FileStep): StepLocation {
    const { path } = step;
    const problem = problemOfUnixPath(path);
    if (problem !== null) throw new Fault('unsafe_path', `${path} ${problem}`);
    const parent = parentOf(path);
    if (makesWay(step)) {
      const { walk, machine } = this;
      makeParents(parent, { walk, staging: this.staging, accounts: machine.accounts }, (part) => {
        this.open.push(part.descriptor);
        this.madeParents.push(part);
      });
    }
    const { held } = reached(this.walk.directory(parent), parent);
    this.machine.temporaries.removeDead(held);
    const at = `${held.at}${path.slice(path.lastIndexOf('/'))}`;
    return { directory: held, at, exposureOf: (entry) => this.walk.exposureOf(held, entry) };
  }
}

/** Steps that put something new into a directory. */
const MAKES: ReadonlySet<FileStep['do']> = new Set(['write-file', 'make-directory', 'make-link']);

const makesWay = (step: FileStep): boolean => 'parents' in step && step.parents === true;

async function syncDirectory({ at }: HeldEntry): Promise<void> {
  let descriptor: number;
  try {
    descriptor = openSync(`${at}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    // A directory that may be written but not listed cannot be synced; its files are.
    if (systemCodeOf(error) === 'EACCES') return;
    throw error;
  }
  try {
    await sync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
