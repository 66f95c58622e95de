/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions that database servers call, and their roles in the programs. */
#ifndef CORETAP_DATABASE_H
#define CORETAP_DATABASE_H

enum database_role {
	DB_NONE,
	DB_DISPATCH,      /* dispatch_command(command, THD, text, bytes): MariaDB, MySQL 5 */
	DB_DISPATCH_DATA, /* dispatch_command(THD, COM_DATA, command): MySQL 5.7 and later */
	DB_STATEMENT,     /* Query_cache::send_result_to_client(this, THD, text, bytes): MariaDB */
	DB_ACTIVITY,      /* pgstat_report_activity(state, text): PostgreSQL */
	DB_PORTAL,        /* PortalRun(): PostgreSQL */
};

enum database_server {
	DB_MYSQL,
	DB_POSTGRES,
};

/* Commands of a MySQL client (enum_server_command), and 256: only parsed, by PostgreSQL. */
#define DB_QUERY 3
#define DB_PREPARE 22
#define DB_EXECUTE 23
#define DB_BULK_EXECUTE 250 /* MariaDB */
#define DB_PARSE 256

#endif
