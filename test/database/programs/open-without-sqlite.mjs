/** Opens the store in a process where better-sqlite3 is not installed. */
import { register } from 'node:module';

register(
  `data:text/javascript,${encodeURIComponent(`
    export function resolve(specifier, context, next) {
      if (specifier.startsWith('better-sqlite3')) throw Object.assign(new Error(\`Cannot find package '\${specifier}'\`), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(specifier, context);
    }
  `)}`,
);
const { openDatabase } = await import('../../../dist/daemon/database/database.js');
const { silentLogger } = await import('../../../dist/src/kernel/logger.js');

try {
  await openDatabase({
    server: null,
    file: process.argv[2],
    clock: Date,
    logger: silentLogger,
    onFatal: () => process.exit(70),
  });
} catch (error) {
  console.log(`${error.code}: ${error.message}\n${error.hint}`);
}
