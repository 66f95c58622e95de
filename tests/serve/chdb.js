// chdb MODULE DIRECTORY: runs the statements of a JSON array on standard input, in a database in DIRECTORY, and
// prints an array of their results: rows as objects. Exits with status 1 at the first failure.
const fs = require("fs");
const [module_path, directory] = process.argv.slice(2);
const { Session } = require(module_path);

const session = new Session(directory);
const results = [];
let status = 0;
for (const statement of JSON.parse(fs.readFileSync(0, "utf8"))) {
  try {
    const text = session.query(statement, "JSONEachRow") || "";
    results.push(text.split("\n").filter(Boolean).map((line) => JSON.parse(line)));
  } catch (error) {
    console.error(`${error.message}\n${statement.slice(0, 300)}`);
    status = 1;
    break;
  }
}
session.cleanup();
fs.writeSync(1, JSON.stringify(results));
process.exitCode = status;
