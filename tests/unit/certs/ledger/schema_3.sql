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
, claimed_from TEXT NOT NULL DEFAULT '', seen_at INTEGER, claim_by INTEGER, revoked_why TEXT NOT NULL DEFAULT '', signer TEXT NOT NULL DEFAULT '') WITHOUT ROWID
;
INSERT INTO "proxy_certificates" VALUES('1a','u1.shop.default','u1',1935817689,1943593689,1935821289,NULL,1935821289,'10.0.0.1:4711',NULL,NULL,'','aa');
INSERT INTO "proxy_certificates" VALUES('2a','u2.shop.default','u2',1935821289,1936426089,1935824889,NULL,NULL,'10.0.0.2:4711',1935835689,1935994089,'','aa');
INSERT INTO "proxy_certificates" VALUES('2b','u2.shop.default','u2',1936076889,1943852889,NULL,NULL,NULL,'',NULL,NULL,'','aa');
INSERT INTO "proxy_certificates" VALUES('3a','u3.shop.default','u3',1935824889,1967360889,NULL,NULL,NULL,'',NULL,NULL,'','aa');
INSERT INTO "proxy_certificates" VALUES('4a','u4.shop.default','u4',1935828489,1939388889,NULL,NULL,NULL,'',NULL,NULL,'','aa');
INSERT INTO "proxy_certificates" VALUES('5a','u5.shop.default','u5',1935832089,1935918489,NULL,1935839289,NULL,'',NULL,NULL,'stolen','aa');
CREATE TABLE spare (filling BLOB NOT NULL);
CREATE INDEX proxy_certificates_by_name ON proxy_certificates (common_name);
COMMIT;
PRAGMA user_version = 3;
