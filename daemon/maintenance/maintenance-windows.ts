/** Creates, changes and deletes maintenance windows for admins. */
import type {
  CreateMaintenanceWindow,
  MaintenanceWindow,
  maintenanceWindowRoutes,
  UpdateMaintenanceWindow,
} from '../../src/contract/maintenance-windows.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { parseSelector } from '../../src/language/selector.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext } from '../core/domain-event.js';
import { requireMatch, tagged } from '../core/entity-tag.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import type { HandlersFor } from '../http/handler.js';
import {
  deleteWindow,
  findWindow,
  hasEnded,
  insertWindow,
  listWindows,
  transitionEvent,
  transitionsUntil,
  unknownAssignments,
  updateWindow,
  type WindowRow,
  type WindowTransition,
  windowDetails,
  windowNotFound,
  windowParty,
  windowView,
} from './window-store.js';

interface MaintenanceWindowsOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  /** Called with all windows after every change. */
  readonly onChanged: (windows: readonly WindowRow[]) => void;
}

export class MaintenanceWindows {
  private readonly options: MaintenanceWindowsOptions;

  constructor(options: MaintenanceWindowsOptions) {
    this.options = options;
  }

  /** Returns all windows, latest start first. */
  async list(): Promise<MaintenanceWindow[]> {
    const now = this.options.clock.now();
    return (await listWindows(this.options.db)).map((row) => windowView(row, now));
  }

  /** Returns a window. Throws `maintenance_window_not_found`. */
  async get(id: string): Promise<MaintenanceWindow> {
    return windowView(await requireWindow(this.options.db, id), this.options.clock.now());
  }

  /** Creates a window. One that has already ended is only a record and never begins. Throws `invalid_body`, `invalid_selector`,
   * `assignment_not_found`. */
  async create(given: CreateMaintenanceWindow, context: RequestContext): Promise<MaintenanceWindow> {
    const { uow, newId, clock, onChanged } = this.options;
    const now = clock.now();
    const [starts_at, ends_at] = [given.starts_at * 1000, given.ends_at * 1000];
    checkOrder({ starts_at, ends_at });
    const scope = scopeOf(given);
    const row: WindowRow = {
      window_id: newId(),
      reason: given.reason,
      starts_at,
      ends_at,
      created_at: now,
      created_by: context.actor.id,
      told: ends_at <= now ? 'ended' : 'nothing',
      ...scope,
    };
    const windows = await uow.write(async (tx, emit) => {
      const [unknown] = await unknownAssignments(tx, row.assignments);
      if (unknown !== undefined) throw unknownAssignment(unknown);
      const moments = transitionsUntil(now, [row]);
      await insertWindow(tx, { ...row, told: recordedState(moments, row) });
      emit(
        eventOfRequest(context, {
          type: 'maintenance.created',
          target: windowParty(row),
          summary: `${context.actor.name} set a maintenance window${purposeOf(row)} from ${toTimestamp(starts_at)} until ${toTimestamp(ends_at)}: ${row.reason}`,
          metadata: windowDetails(row),
        }),
      );
      emitTransitions(moments, emit, context);
      return listWindows(tx);
    });
    onChanged(windows);
    return windowView(row, now);
  }

  /**
   * Changes a window; an update with equal values changes nothing. Throws `maintenance_window_not_found`,
   * `maintenance_window_over`, `invalid_body`.
   */
  async update(id: string, given: UpdateMaintenanceWindow, context: RequestContext): Promise<MaintenanceWindow> {
    const { uow, clock, onChanged } = this.options;
    const now = clock.now();
    const { view, windows } = await uow.write(async (tx, emit) => {
      const before = await requireWindow(tx, id);
      requireMatch(context, `the maintenance window ${id}`, contentOf(windowView(before, now)));
      const ends_at = given.ends_at == null ? before.ends_at : given.ends_at * 1000;
      const row = { ...before, ends_at, reason: given.reason ?? before.reason };
      if (row.ends_at === before.ends_at && row.reason === before.reason) {
        return { view: windowView(before, now), windows: await listWindows(tx) };
      }
      checkOrder(row);
      if (row.ends_at !== before.ends_at && hasEnded(before, now)) throw windowOver(before);
      const moments = transitionsUntil(now, [row]);
      const told = recordedState(moments, row);
      await updateWindow(tx, id, { ends_at: row.ends_at, reason: row.reason, told });
      emit(
        eventOfRequest(context, {
          type: 'maintenance.updated',
          target: windowParty(row),
          summary: `${context.actor.name} changed a maintenance window, which is until ${toTimestamp(row.ends_at)} now: ${row.reason}`,
          metadata: { ...windowDetails(row), before: { reason: before.reason, ends_at: toTimestamp(before.ends_at) } },
        }),
      );
      emitTransitions(moments, emit, context);
      return { view: windowView({ ...row, told }, now), windows: await listWindows(tx) };
    });
    onChanged(windows);
    return view;
  }

  /** Deletes a window; an active one ends. Throws `maintenance_window_not_found`. */
  async remove(id: string, context: RequestContext): Promise<void> {
    const { uow, clock, onChanged } = this.options;
    const now = clock.now();
    const windows = await uow.write(async (tx, emit) => {
      const row = await requireWindow(tx, id);
      requireMatch(context, `the maintenance window ${id}`, contentOf(windowView(row, now)));
      const due = transitionsUntil(now, [row]);
      const isUnderWay = recordedState(due, row) === 'started';
      emitTransitions(isUnderWay ? [...due, { row, told: 'ended', at: now }] : due, emit, context);
      await deleteWindow(tx, id);
      emit(
        eventOfRequest(context, {
          type: 'maintenance.deleted',
          target: windowParty(row),
          summary: `${context.actor.name} deleted a maintenance window: ${row.reason}`,
          metadata: windowDetails(row),
        }),
      );
      return listWindows(tx);
    });
    onChanged(windows);
  }
}

/** Returns what the window is for. Throws `invalid_body` for a pause with assignments, and for a permit without any or with a selector. */
function scopeOf({
  kind,
  selector,
  assignments,
}: CreateMaintenanceWindow): Pick<WindowRow, 'kind' | 'selector' | 'assignments'> {
  const names = [...new Set(assignments ?? [])];
  if (kind !== 'permit') {
    if (names.length > 0) throw invalidScope('/assignments', 'belongs to a permit: kind must be "permit"');
    if (selector != null) parseSelector(selector);
    return { kind: 'pause', selector: selector ?? null, assignments: [] };
  }
  if (selector != null)
    throw invalidScope('/selector', 'belongs to a pause: a permit is for the agents of its assignments');
  if (names.length === 0) throw invalidScope('/assignments', 'must name at least one assignment for a permit');
  return { kind, selector: null, assignments: names };
}

const invalidScope = (path: string, message: string): Fault =>
  new Fault('invalid_body', `the body is not valid: ${path} ${message}`, { errors: [{ path, message }] });

const unknownAssignment = (name: string): Fault =>
  new Fault('assignment_not_found', `there is no assignment "${name}"`, {
    hint: 'see what there is: orch assignments list',
    data: { assignment: name },
  });

/** Returns what a summary says about the scope of a window; empty for a pause of everything. */
function purposeOf({ kind, selector, assignments }: WindowRow): string {
  if (kind === 'permit') return ` that permits applies of ${assignments.join(', ')}`;
  return selector === null ? '' : ` for the agents of ${selector}`;
}

const recordedState = (moments: readonly WindowTransition[], row: WindowRow): WindowRow['told'] =>
  moments.at(-1)?.told ?? row.told;

function emitTransitions(moments: readonly WindowTransition[], emit: Emit, context: RequestContext): void {
  for (const moment of moments) emit(transitionEvent(moment, context));
}

async function requireWindow(db: Queryable, id: string): Promise<WindowRow> {
  const row = await findWindow(db, id);
  if (row === null) throw windowNotFound(id);
  return row;
}

function checkOrder({ starts_at, ends_at }: Pick<WindowRow, 'starts_at' | 'ends_at'>): void {
  if (ends_at > starts_at) return;
  const message = 'must be after starts_at';
  throw new Fault('invalid_body', `the body is not valid: /ends_at ${message}`, {
    hint: 'delete the window if it is not to be',
    errors: [{ path: '/ends_at', message }],
  });
}

const windowOver = ({ window_id, ends_at }: WindowRow): Fault =>
  new Fault('maintenance_window_over', `the maintenance window ${window_id} is over since ${toTimestamp(ends_at)}`, {
    hint: 'make a new one: orch maintenance start --for 1h --reason WHY',
  });

/** Returns what a change of a window can replace. */
const contentOf = ({ id, ends_at, reason }: MaintenanceWindow) => ({ id, ends_at, reason });

/** Returns a window with its tag. */
const shown = (window: MaintenanceWindow) => tagged(window, contentOf(window));

/** Handlers of the maintenance window routes. */
export const maintenanceWindowHandlers = (
  windows: MaintenanceWindows,
): HandlersFor<typeof maintenanceWindowRoutes> => ({
  listMaintenanceWindows: async () => ({ status: 200, body: await windows.list() }),
  createMaintenanceWindow: async ({ body, context }) => ({
    status: 201,
    ...shown(await windows.create(body, context)),
  }),
  getMaintenanceWindow: async ({ params }) => ({ status: 200, ...shown(await windows.get(params.id)) }),
  updateMaintenanceWindow: async ({ params, body, context }) => ({
    status: 200,
    ...shown(await windows.update(params.id, body, context)),
  }),
  removeMaintenanceWindow: async ({ params, context }) => {
    await windows.remove(params.id, context);
    return { status: 204, body: undefined };
  },
});
