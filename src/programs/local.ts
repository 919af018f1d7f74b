/** The agent's engine on this machine without an orchestrator, for `--local`. */
import type { PackageVersions, PartedAttributes } from '../kernel/facts.js';
import type { FaultCode } from '../kernel/fault.js';
import type { CheckReport, DesiredCheck } from '../resources/checks/check.js';
import type { DesiredResource, Removal } from '../resources/desired.js';
import type { Output, ResourceResult } from '../resources/result.js';

export interface LocalFlags {
  /** Directory of the local state; undefined for the default. */
  readonly dataDir: string | undefined;
}

export interface LocalContent {
  /** Resources in order of application. */
  readonly resources: readonly DesiredResource[];
  /** Removals in order of their original application. */
  readonly removals: readonly Removal[];
  /** Health checks, which an apply runs last; absent without any. */
  readonly verify?: readonly DesiredCheck[];
}

export interface LocalItem {
  /** Index into the resources followed by the removals. */
  readonly index: number;
  readonly result: ResourceResult;
  /** True if it existed before this run; null if unknown. */
  readonly existed: boolean | null;
  /** Output of a script. */
  readonly output?: Output | null | undefined;
}

export interface LocalOptions {
  /** Stops the run at the next resource boundary. */
  readonly signal: AbortSignal;
  readonly onResults: (items: readonly LocalItem[]) => void;
}

interface LocalApplyOptions extends LocalOptions {
  /** Maximum entries that purges may delete together. */
  readonly mayPurge: number;
  readonly operationId: string;
  /** Paths on this machine of the files beside modules, by SHA-256 in hex. */
  readonly files: ReadonlyMap<string, string>;
  /** `observed` hash of a plan: the apply is refused if the machine has changed since. */
  readonly expect: string | null;
  /** Called before the first change is announced. The apply ends without it when this throws. */
  readonly beforeChanges: () => void;
}

export interface LocalOutcome {
  readonly end: 'succeeded' | 'failed' | 'cancelled' | 'interrupted' | 'refused';
  readonly results: readonly LocalItem[];
  readonly error: { readonly code: FaultCode; readonly message: string } | null;
  /** Reports about the health checks of an apply that came to them. */
  readonly checks?: readonly CheckReport[];
}

/** An apply in the agent's journal, which the believed state may not contain yet. */
export interface LocalApply {
  readonly operationId: string;
  /** With masks in the place of secrets. */
  readonly content: LocalContent;
  /** Announced changes, which may or may not have happened. */
  readonly intents: readonly { readonly index: number; readonly existed: boolean }[];
  readonly items: readonly LocalItem[];
}

/** The agent's engine and journal on this machine, without an orchestrator. */
export interface LocalEngine {
  /** Applies that were cut off before the state was stored, oldest first. */
  readonly applies: readonly LocalApply[];
  /** Sentence about a damaged or missing journal; null if it was intact. */
  readonly loss: string | null;
  plan(content: LocalContent, options: LocalOptions): Promise<LocalOutcome & { readonly observed: string | null }>;
  /** Each change is in the journal before it is made, and each result before it is passed on. */
  apply(content: LocalContent, options: LocalApplyOptions): Promise<LocalOutcome>;
  drift(content: LocalContent, options: LocalOptions): Promise<LocalOutcome>;
  /** Removes all applies from the journal. Call it once the state is stored. */
  acknowledge(): void;
}

export interface LocalMachine {
  readonly dataDir: string;
  readonly hostname: string;
  /** Attributes as the agent would report them. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Facts beside them. One of one's own that fails is absent. */
  readonly facts: { readonly parts: PartedAttributes; readonly own: Readonly<Record<string, unknown>> };
  /** Reads the versions of those of these packages that are installed. Throws `expression_error` if the package manager gives none. */
  packageVersions(names: readonly string[]): Promise<PackageVersions>;
  /** Returns a new ULID. */
  newId(): string;
  /** Opens the engine. The caller must hold the data directory. Throws `journal_corrupt` for a journal of a newer version. */
  openEngine(): LocalEngine;
}
