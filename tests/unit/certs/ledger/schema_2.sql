BEGIN TRANSACTION;
CREATE TABLE authority (fingerprint TEXT NOT NULL);
INSERT INTO "authority" VALUES('aa');
CREATE TABLE proxy_certificates (
    serial TEXT PRIMARY KEY,
    common_name TEXT NOT NULL,
    uuid TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    claimed_at INTEGER,
    revoked_at INTEGER,
    admitted_at INTEGER
) WITHOUT ROWID
;
INSERT INTO "proxy_certificates" VALUES('1a','u1.shop.default','u1',1935817689,1967353689,1935821289,NULL,1935824889);
INSERT INTO "proxy_certificates" VALUES('1b','u1.shop.default','u1',1935904089,1967440089,NULL,NULL,NULL);
INSERT INTO "proxy_certificates" VALUES('2a','u2.shop.default','u2',1935824889,1967360889,1935832089,NULL,NULL);
INSERT INTO "proxy_certificates" VALUES('3a','u3.shop.default','u3',1935828489,1967364489,NULL,1935835689,NULL);
CREATE TABLE spare (filling BLOB NOT NULL);
CREATE INDEX proxy_certificates_by_name ON proxy_certificates (common_name);
COMMIT;
PRAGMA user_version = 2;
