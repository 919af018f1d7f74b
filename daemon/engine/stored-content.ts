/** What an operation dispatched, as it stands in the store: secrets masked. */
import { mapped, type Steps } from '../../src/kernel/steps.js';
import type { DesiredResource, Removal } from '../../src/resources/desired.js';
import { isTainted, maskResource } from '../../src/resources/tainted-body.js';
import type { RunContent } from '../../src/wire/parts.js';
import type { SecretHashes } from './agent-secrets.js';
import type { OperationContent } from './live-operation.js';

export interface StoredContent {
  readonly desired_json: string;
  readonly removals_json: string;
}

interface Desired {
  readonly resources: readonly DesiredResource[];
  readonly ad_hoc: readonly string[];
  readonly expect: string | null;
  /** Absent in what was stored before there were secrets. */
  readonly secrets?: SecretHashes;
  readonly failures?: OperationContent['failures'];
}

export function storeContent({
  resources,
  removals,
  failures,
  adHoc,
  expect,
  secrets,
}: OperationContent): StoredContent {
  const desired: Desired = { resources, ad_hoc: [...adHoc], expect, secrets, failures };
  return { desired_json: JSON.stringify(desired), removals_json: JSON.stringify(removals) };
}

export function readContent({ desired_json, removals_json }: StoredContent): OperationContent {
  const desired: Desired = JSON.parse(desired_json);
  const removals: readonly Removal[] = JSON.parse(removals_json);
  const { resources, failures = [], ad_hoc: adHoc, expect, secrets = {} } = desired;
  return { resources, removals, failures, adHoc: new Set(adHoc), expect, secrets };
}

/** The content without secrets. */
export function* maskContent({ resources, removals }: RunContent): Steps<RunContent> {
  return { resources: yield* mapped(resources, maskResource), removals: yield* mapped(removals, maskResource) };
}

/** What can be sent of a content that was read from the store: all of it, or null when it held secrets. */
export const sendable = ({ resources, removals }: OperationContent): RunContent | null =>
  [...resources, ...removals].some(isTainted) ? null : { resources, removals };
