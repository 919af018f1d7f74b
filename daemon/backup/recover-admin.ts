/** `orch serve recover-admin`: whoever owns the data directory makes somebody an admin, when no admin can log in. */
import { AdminRecovery, type RecoveredAdmin, type WantedAdmin } from '../auth/admin-recovery.js';
import { type StoppedOptions, withStoppedStore } from './stopped-store.js';

export interface RecoverOptions extends StoppedOptions {
  readonly wanted: WantedAdmin;
  /** Asks before anything is changed; what it throws ends it. */
  readonly confirm: (found: RecoveredAdmin) => Promise<void>;
}

/** Throws as `withStoppedStore` and `AdminRecovery` do. */
export function recoverAdmin(options: RecoverOptions): Promise<RecoveredAdmin> {
  const { wanted, confirm, clock, newId } = options;
  return withStoppedStore({ ...options, command: 'orch serve recover-admin' }, async ({ db, uow }) => {
    const recovery = new AdminRecovery({ db, uow, clock });
    const found = await recovery.preview(wanted);
    if (found.change === 'none') return found;
    await confirm(found);
    return recovery.recover(wanted, newId());
  });
}
