/** What a resource kind is: schema, identity, a batched read and a pure plan. One file per kind. */
import type { TSchema } from 'typebox';
import type { FaultCode } from '../kernel/fault-code.js';
import type { Accounts, Host, Step } from './host.js';

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

/** What has to be done about one resource. */
export type Decision =
  | { readonly action: 'none' }
  | {
      readonly action: 'create' | 'update' | 'remove';
      readonly changes: readonly FieldChange[];
      /** The text content before and after, when the content is what changes; the engine makes the diff. */
      readonly text?: { readonly before: string | null; readonly after: string | null };
      readonly steps: readonly Step[];
      readonly reason?: string;
    }
  | { readonly action: 'release'; readonly reason: string }
  | { readonly action: 'fail'; readonly code: FaultCode; readonly message: string };

/** What a plan may know beyond its own body and observation. */
export interface PlanContext {
  readonly accounts: Accounts;
  /** True when another resource of the desired set, applied before this one, provides that identity. */
  declares(family: Family, identity: string): boolean;
  /** True when that identity is removed in the same run, before this one. */
  removes(family: Family, identity: string): boolean;
  /** True when the body holds a secret: a new file is then private by default. */
  readonly sensitive: boolean;
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

/** What an observation is for. */
export type ReadPurpose = 'plan' | 'removal';

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
  /** How many resources to read at once at most, for kinds whose observations are large; without it, all of them. */
  readonly batch?: number;
  /** Observes all wanted resources of this kind at once, in order; a removal may have to know more than a plan. */
  read(host: Host, wants: readonly B[], purpose: ReadPurpose): readonly Have[] | Promise<readonly Have[]>;
  /** True when the thing was on the machine when it was observed. */
  exists(have: Have): boolean;
  plan(want: B, have: Have, context: PlanContext): Decision;
  /** What it takes to remove a resource that orch created; `last` is the body it was applied with. */
  planRemoval(last: B, have: Have, context: PlanContext): Decision;
}

/** Declares a resource kind; the type parameters tie the schema's body to the functions. */
export function defineResource<B extends object, Have>(kind: ResourceKind<B, Have>): ResourceKind<B, Have> {
  return kind;
}
