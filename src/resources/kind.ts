/** What a resource kind is: schema, identity, a batched read and a pure plan. One file per kind. */
import type { TSchema } from 'typebox';
import type { FaultCode } from '../kernel/fault.js';
import type { CommandResult } from './command.js';
import type { Accounts, Host, RunStep, Step } from './host.js';

/** A body after validation: string, number, boolean, null, lists and maps of those. */
export type Body = Readonly<Record<string, unknown>>;

/** A mistake that the schema alone cannot see; `path` is a JSON pointer inside the body. */
export interface BodyProblem {
  readonly path: string;
  readonly message: string;
}

/** One field that differs. Values are shown to people, so numbers and modes come as text. */
export interface FieldChange {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Body members that list ids of resources whose change makes this one reload, restart or run again. */
export const TRIGGER_FIELDS = ['reload_on', 'restart_on', 'rerun_on'] as const;
export type TriggerField = (typeof TRIGGER_FIELDS)[number];

/** What has to be done about one resource. */
export type Decision =
  | { readonly action: 'none' }
  | {
      /** `run`, `reload` and `restart` are for what is in the desired state and only triggered, and for scripts. */
      readonly action: 'create' | 'update' | 'remove' | 'run' | 'reload' | 'restart';
      readonly changes: readonly FieldChange[];
      /** The text content before and after, when the content is what changes; the engine makes the diff. */
      readonly text?: { readonly before: string | null; readonly after: string | null };
      readonly steps: readonly Step[];
      readonly reason?: string;
      /** Missing directories that are made on the way. */
      readonly makes?: readonly string[];
      /**
       * A trigger that these steps answer because of their own change, such as the restart after a new unit file: owed from
       * before the first step until all have succeeded, so that a crash in between does not lose it.
       */
      readonly owes?: TriggerField;
      /** True when nothing on the machine tells that the steps were done, so that their success has to do. */
      readonly isUnseen?: boolean;
    }
  | { readonly action: 'release'; readonly reason: string }
  | { readonly action: 'fail'; readonly code: FaultCode; readonly message: string };

/** What a plan may know beyond its own body and observation. */
export interface PlanContext {
  readonly accounts: Accounts;
  /** True when another resource of the desired set, applied before this one, provides that identity, and is of the kind if one is given. */
  declares(family: Family, identity: string, kind?: string): boolean;
  /** True when another resource of the desired set provides that identity, and is applied after this one. */
  comesLater(family: Family, identity: string): boolean;
  /** True when a resource that is applied before this one makes that missing directory on its way. */
  isMade(directory: string): boolean;
  /** True when that identity is removed in the same run, before this one. */
  removes(family: Family, identity: string): boolean;
  /** True when the body holds a secret: a new file is then private by default. */
  readonly sensitive: boolean;
  /** In an apply, a plan or a removal the machine is to be brought to the body; drift asks whether it is as it was left. */
  readonly purpose: ReadPurpose;
  /** Triggers to answer: a listed resource has changed (in a plan: will change), or one is owed since an earlier run. */
  readonly due: ReadonlySet<TriggerField>;
  /** In a plan: something that comes before is still to be changed, and may bring what is missing. */
  readonly mayAppear: boolean;
  /** What `memo` gave at the last success on this machine; null when there was none. */
  readonly memo: string | null;
  /** A hash of a JSON value under a key of this machine; the same value has the same hash, run after run. */
  digest(value: unknown): string;
}

/** Two resources of one family with the same identity are the same thing on the machine. */
export type Family =
  | 'path'
  | 'group'
  | 'user'
  | 'service'
  | 'package-apt'
  | 'package-dnf'
  | 'package-brew'
  | 'package-choco'
  | 'package-winget'
  | 'script';

/** Families whose identities belong to one module: two modules may each have a resource of the same identity. */
export const MODULE_FAMILIES: ReadonlySet<Family> = new Set(['script']);

/** What an observation is for. Only `apply` may bring what the machine knows up to date, such as a package index. */
export type ReadPurpose = 'plan' | 'apply' | 'drift' | 'removal';

export interface ResourceKind<B extends object = Body, Have = unknown> {
  readonly kind: string;
  readonly family: Family;
  /** The platforms on which this kind can be applied. */
  readonly platforms: readonly Host['platform'][];
  /** Schema of the body, closed against unknown keys. */
  readonly schema: TSchema;
  /** Rules beyond the schema. Called only with bodies that the schema accepts. */
  check(body: B): readonly BodyProblem[];
  /** What the resource is on the machine; `id` is the resource's own id in the module. Empty when nothing tells it. */
  identity(body: B, id: string | null): string;
  /** Identities of the same or another family that must be there first when they are declared too. */
  requires(body: B): readonly { readonly family: Family; readonly identity: string }[];
  /** Identities further up that must come first when they are declared, as `requires` has the nearest ones. */
  above?(body: B): readonly { readonly family: Family; readonly identity: string }[];
  /** How many resources to read at once at most, for kinds whose observations are large; without it, all of them. */
  readonly batch?: number;
  /**
   * True when one query answers for all resources of the kind: a run then asks once for all of them, and again only after
   * something was changed.
   */
  readonly queried?: boolean;
  /** Observes all wanted resources of this kind at once, in order; a removal may have to know more than a plan. */
  read(host: Host, wants: readonly B[], purpose: ReadPurpose): readonly Have[] | Promise<readonly Have[]>;
  /** True when the thing was on the machine when it was observed. */
  exists(have: Have): boolean;
  plan(want: B, have: Have, context: PlanContext): Decision;
  /** What it takes to remove a resource that orch created; `last` is the body it was applied with. */
  planRemoval(last: B, have: Have, context: PlanContext): Decision;
  /**
   * Members of the body that `planRemoval` makes something of although they may hold secrets; the others come to it without
   * theirs. None unless told.
   */
  readonly removalNeeds?: readonly (keyof B & string)[];
  /**
   * Members that make one thing together, such as the text of a unit file: where a secret in one of them is not known, none of
   * them can be compared.
   */
  readonly inseparable?: readonly (keyof B & string)[];
  /** Whether anything on the machine changes when what orch created is removed. True unless told; else it is released. */
  removes?(last: B): boolean;
  /**
   * True when the memo may be all that tells of the state: it is forgotten before the steps begin, so that a change that
   * fails half way is not taken for what was there before.
   */
  readonly memoIsState?: boolean;
  /** What to remember of a success until the next one, as `context.memo`; null for nothing. At most 1,024 characters, no secret. */
  memo?(want: B, have: Have, context: PlanContext): string | null;
  /** Why a command of a step has failed, better than its last lines tell; may look at the machine. */
  explain?(host: Host, body: B, step: RunStep, result: CommandResult): Promise<CommandRefusal> | CommandRefusal;
  /**
   * Asked when a command has failed, be it one that was put together for several resources: what has become of this one.
   * `done` when it has what the step is for all the same, a refusal when it is known why not, `undone` when that is to be
   * found out by running the step for it alone.
   */
  judge?(host: Host, body: B, step: RunStep, result: CommandResult): Promise<StepVerdict>;
}

/** Why something could not be done. */
export interface CommandRefusal {
  readonly code: FaultCode;
  readonly message: string;
}

/** What has become of one resource under a command that has failed. */
export type StepVerdict = 'done' | 'undone' | CommandRefusal;

/** Declares a resource kind; the type parameters tie the schema's body to the functions. */
export function defineResource<B extends object, Have>(kind: ResourceKind<B, Have>): ResourceKind<B, Have> {
  return kind;
}
