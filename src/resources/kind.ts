/** The interface of a resource kind: schema, identity, a batched read and a pure plan. Each kind has its own file. */
import type { TSchema } from 'typebox';
import type { CommandRefusal, CommandResult, Quote } from './command.js';
import type { Accounts, Host, RunStep, Step } from './host.js';

/** A body after validation: string, number, boolean, null, lists and maps of those. */
export type Body = Readonly<Record<string, unknown>>;

/** A mistake beyond the schema; `path` is a JSON pointer in the body. */
export interface BodyProblem {
  readonly path: string;
  readonly message: string;
}

/** A field that differs. Values are for display, so numbers and modes are text. */
export interface FieldChange {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Body members that list IDs of resources whose change makes this one reload, restart or run again. */
export const TRIGGER_FIELDS = ['reload_on', 'restart_on', 'rerun_on'] as const;
export type TriggerField = (typeof TRIGGER_FIELDS)[number];

/** The decision about one resource. */
export type Decision =
  | { readonly action: 'none' }
  | {
      /** `run`, `reload` and `restart` are for triggered resources in the desired state, and for scripts. */
      readonly action: 'create' | 'update' | 'remove' | 'run' | 'reload' | 'restart';
      readonly changes: readonly FieldChange[];
      /** The content before and after if it changes; the engine makes the diff. */
      readonly text?: { readonly before: string | null; readonly after: string | null };
      readonly steps: readonly Step[];
      readonly reason?: string;
      /** Missing parent directories that the steps make. */
      readonly makes?: readonly string[];
      /**
       * A trigger that these steps answer because of their own change, such as the restart after a new unit file. It is owed from
       * before the first step until all have succeeded, so that a crash does not lose it.
       */
      readonly owes?: TriggerField;
      /** True when the effect cannot be observed, so that the success of the steps counts. */
      readonly isUnseen?: boolean;
      /** Memo that replaces the last one before the first step, so that a run that ends in between is noticed. */
      readonly memoBefore?: string;
      /** Why the resource still differs, if the decision is the same after the steps. */
      readonly unmet?: Quote;
    }
  | { readonly action: 'release'; readonly reason: string }
  | ({ readonly action: 'fail' } & CommandRefusal);

/** The inputs of a plan beyond body and observation. */
export interface PlanContext {
  readonly accounts: Accounts;
  /** True when an earlier resource of the desired set provides that identity and, if given, is of the kind. */
  declares(family: Family, identity: string, kind?: string): boolean;
  /** True when a later resource of the desired set provides that identity. */
  comesLater(family: Family, identity: string): boolean;
  /** True when an earlier resource makes that missing directory as a parent. */
  isMade(directory: string): boolean;
  /**
   * Directories that orch made on the way to resources that are removed now, and that give way to this resource, innermost first.
   * The resource removes them, the last of which has its path.
   */
  readonly cleared: readonly string[];
  /** Returns the content that an earlier change of the same plan writes to a path; null for none. */
  written(path: string): string | null;
  /** True when that identity is removed earlier in the same run. */
  removes(family: Family, identity: string): boolean;
  /** True when the body holds a secret; a new file is then private by default. */
  readonly sensitive: boolean;
  /** Apply, plan and removal compare the machine with the body; drift compares it with the state that the last apply left. */
  readonly purpose: ReadPurpose;
  /** Due triggers: a listed resource has changed (in a plan: will change), or the trigger is owed since an earlier run. */
  readonly due: ReadonlySet<TriggerField>;
  /** True in a plan when a pending earlier change may bring what is missing. */
  readonly mayAppear: boolean;
  /** True in a plan when a pending earlier change concerns the repositories of a package manager. */
  readonly changesRepositories?: boolean;
  /** Return value of `memo` at the last success on this machine; null without one. */
  readonly memo: string | null;
  /** Returns a hash of a JSON value, keyed with a secret of this machine and equal in every run. */
  digest(value: unknown): string;
}

/**
 * A namespace of identities: resources of one family with the same identity are the same thing on the machine. A kind that shares
 * its identities with no other has its own key as its family, such as `package-apt`.
 */
export type Family = 'path' | 'group' | 'user' | 'service' | 'script' | `${string}-${string}`;

/** Families whose identities are local to a module, so that two modules may use the same one. */
export const MODULE_FAMILIES: ReadonlySet<Family> = new Set(['script']);

/** The purpose of an observation. Only `apply` may refresh caches of the machine, such as a package index. */
export type ReadPurpose = 'plan' | 'apply' | 'drift' | 'removal';

/** What the resources of a run have to do with paths that none of them names. */
export interface Surroundings {
  /** True for a path that a resource names, or that a removal of the run takes. */
  isDeclared(path: string): boolean;
  /** True for a directory in which such a path lies, and for a directory that a removal of the run takes. */
  isOnTheWay(path: string, isLink: boolean): boolean;
  /** True for a directory in which the agent itself lies. */
  holdsAgent(path: string): boolean;
}

export interface ResourceKind<B extends object = Body, Have = unknown> {
  readonly kind: string;
  readonly family: Family;
  /** For an absence: the kind of which something is absent. */
  readonly absenceOf?: ResourceKind;
  /** True when one entry may list several of them by `names`, each of which is a resource with its `name` [default: false]. */
  readonly isListed?: boolean;
  /** Platforms on which this kind can be applied. */
  readonly platforms: readonly Host['platform'][];
  /** Schema of the body, closed against unknown keys. */
  readonly schema: TSchema;
  /** Checks rules beyond the schema. Called only with bodies that the schema accepts. */
  check(body: B): readonly BodyProblem[];
  /** Returns the identity on the machine, or an empty text without one; `id` is the resource's ID in the module. */
  identity(body: B, id: string | null): string;
  /** Returns identities of any family that, if declared, must be applied first. */
  requires(body: B): readonly { readonly family: Family; readonly identity: string }[];
  /** Returns a body that fulfils two different declarations of the same thing; null if none does [default: null]. */
  agreed?(one: B, other: B): B | null;
  /** Returns why the resource contradicts a declared one that it requires, or null [default: null]. */
  clash?(body: B, holder: { readonly kind: string; readonly body: Body }): string | null;
  /** Returns more distant ancestors that, if declared, must be applied first; `requires` returns the nearest ones. */
  above?(body: B): readonly { readonly family: Family; readonly identity: string }[];
  /**
   * Returns the path of the file of which the resource changes a part. Resources with one file are changed one after another, and
   * no resource may have the whole file.
   */
  edits?(body: B): string;
  /** Returns a test for resources in the same file that would, as declared, undo this one or be undone by it; null for none. */
  forbids?(body: B): ((other: { readonly kind: string; readonly body: Body }) => boolean) | null;
  /**
   * Returns a key that is equal for resources which are changed in one group, because one command checks them together; null for
   * none.
   */
  together?(body: B): string | null;
  /** Maximum resources per read, for kinds with large observations [default: all]. */
  readonly batch?: number;
  /**
   * True when one query answers for all resources of the kind. A run then reads all of them at once, and again only after a
   * change.
   */
  readonly queried?: boolean;
  /** Observes all wanted resources of this kind at once, in order; a removal may read more than a plan. Only purges look at `near`. */
  read(
    host: Host,
    wants: readonly B[],
    purpose: ReadPurpose,
    near?: Surroundings,
  ): readonly Have[] | Promise<readonly Have[]>;
  /**
   * Returns for each body a text that is equal for two bodies of the family if they are the same thing on this machine, such as a
   * unit and its alias; null where the identity alone tells. Paths need none (`Host.locator`).
   */
  thingsOf?(host: Host, wants: readonly B[]): readonly (string | null)[] | Promise<readonly (string | null)[]>;
  /**
   * Returns those of the removals that have to go before the wanted resources can be made, such as packages that one of them
   * conflicts with. All of `wants` need a change. Paths are compared by the engine.
   */
  obstacles?(
    host: Host,
    wants: readonly NeededChange<B>[],
    removals: readonly Obstacle[],
  ): readonly Obstacle[] | Promise<readonly Obstacle[]>;
  /** True when the thing existed at the observation. */
  exists(have: Have): boolean;
  plan(want: B, have: Have, context: PlanContext): Decision;
  /** Plans the removal of a resource that orch created; `last` is the body that it was applied with. */
  planRemoval(last: B, have: Have, context: PlanContext): Decision;
  /**
   * Members of the body that `planRemoval` needs with their secrets; secrets of other members are masked [default: none].
   */
  readonly removalNeeds?: readonly (keyof B & string)[];
  /**
   * Members that form one text together, such as a unit file: if a secret in one of them is unknown, none can be compared.
   */
  readonly inseparable?: readonly (keyof B & string)[];
  /** False when a removal changes nothing on the machine, so that the resource is released [default: true]. */
  removes?(last: B): boolean;
  /**
   * True when the memo may be the only record of the state. It is deleted before the steps, so that a change that fails half
   * way does not count as the previous state.
   */
  readonly memoIsState?: boolean;
  /** Returns a memo of a success for `context.memo` of later runs, or null. At most 1,024 characters, no secret. */
  memo?(want: B, have: Have, context: PlanContext): string | null;
  /**
   * Explains a failed command better than its last lines do; may query the machine. Where `result.withheld` is present, no text
   * of a program may be quoted.
   */
  explain?(host: Host, body: B, step: RunStep, result: CommandResult): Promise<CommandRefusal> | CommandRefusal;
  /** True when `explain` and `judge` keep to `result.withheld`, so that they may read such output [default: it is empty]. */
  readonly keepsWithheld?: boolean;
  /**
   * Returns the state of one resource after a failed command, which may have run for several resources: `done` if the step's
   * goal is reached anyway, a refusal with the cause, or `undone` to run the step for this resource alone.
   */
  judge?(host: Host, body: B, step: RunStep, result: CommandResult): Promise<StepVerdict>;
}

/** The module, kind and identity of a resource. */
export interface ResourceAddress {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
}

/** A resource that orch created and that an apply removes. */
export interface Obstacle extends ResourceAddress {
  readonly body: object;
}

/** A wanted resource that needs a change. */
export interface NeededChange<B> extends ResourceAddress {
  readonly body: B;
  /** True when it never succeeded on this machine, for kinds with a memo. */
  readonly isNew: boolean;
  /** Empty when its plan fails. */
  readonly changes: readonly FieldChange[];
}

/** The state of one resource after a failed command. */
export type StepVerdict = 'done' | 'undone' | CommandRefusal;

/** Declares a resource kind; the type parameters tie the body to the functions. */
export function defineResource<B extends object, Have>(kind: ResourceKind<B, Have>): ResourceKind<B, Have> {
  return kind;
}
