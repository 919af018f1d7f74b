/** A service of Windows as the machine tells of it. */
import { textOf, textsOf } from '../json-answer.js';
import type { CommandRefusal } from '../kind.js';

export const START_TYPES = ['auto', 'auto_delayed', 'manual', 'disabled'] as const;
export type StartType = (typeof START_TYPES)[number];

export interface WindowsService {
  readonly isRunning: boolean;
  readonly binary_path: string;
  readonly display_name: string;
  readonly description: string;
  /** Drivers have others too, as Windows writes them. */
  readonly start_type: StartType | (string & {});
  readonly account: string;
  readonly dependencies: readonly string[];
}

export type ServiceFact =
  | { readonly is: 'absent' }
  /** `computer` is the name of the machine. */
  | { readonly is: 'there'; readonly computer: string; readonly service: WindowsService }
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal };

/** From a Win32_Service and its `DependOn`. What is about to start counts as running only when it does. */
export const serviceOf = (service: Readonly<Record<string, unknown>>): WindowsService => ({
  isRunning: service.State === 'Running',
  binary_path: textOf(service.PathName),
  display_name: textOf(service.DisplayName),
  description: textOf(service.Description),
  start_type: startTypeOf(textOf(service.StartMode), service.DelayedAutoStart === true),
  account: textOf(service.StartName),
  dependencies: textsOf(service.DependOn),
});

function startTypeOf(mode: string, isDelayed: boolean): WindowsService['start_type'] {
  if (mode === 'Auto') return isDelayed ? 'auto_delayed' : 'auto';
  return mode.toLowerCase();
}
