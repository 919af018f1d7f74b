/** Opens the store of the given file and says how that went. */
import { openDatabase } from '../../../dist/daemon/database/database.js';
import { silentLogger } from '../../../dist/src/kernel/logger.js';

try {
  const store = await openDatabase({
    server: null,
    file: process.argv[2],
    clock: Date,
    logger: silentLogger,
    onFatal: () => process.exit(70),
  });
  console.log('opened');
  await store.close();
} catch (error) {
  console.log(`${error.code}: ${error.message}`);
}
