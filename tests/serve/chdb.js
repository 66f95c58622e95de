// chdb MODULE DIRECTORY: runs the statements that standard input has as an array of JSON, in a database in DIRECTORY, and
// prints an array of what each gives: rows as objects. Ends with status 1 at the first that fails.
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
