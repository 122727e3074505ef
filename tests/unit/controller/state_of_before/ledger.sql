BEGIN TRANSACTION;
CREATE TABLE authority (fingerprint TEXT NOT NULL);
INSERT INTO "authority" VALUES('acdc621a689f3f30b966de17df4a0b9c8ad3cdb0d542485cd9a4a3ae9d817bae');
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
INSERT INTO "proxy_certificates" VALUES('1f4eb31c807236cd2c7236f0152a5072dd5a2422','u1.shop.default','u1',1935817689,1967353689,1935821289,NULL,1935824889);
INSERT INTO "proxy_certificates" VALUES('38252ad45a0f9b2f84fd25ac9e3da62d0f600363','u2.shop.default','u2',1935990489,1967526489,1936076889,NULL,NULL);
INSERT INTO "proxy_certificates" VALUES('87aff9aee0f7fe5df39d57c3dd8a805d189326','u1.shop.default','u1',1935904089,1967440089,NULL,1936076889,NULL);
CREATE TABLE spare (filling BLOB NOT NULL);
CREATE INDEX proxy_certificates_by_name ON proxy_certificates (common_name);
COMMIT;
PRAGMA user_version = 2;
