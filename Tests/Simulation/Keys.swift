/// Test keys that nothing outside the simulation knows or trusts.
enum Keys {
  static let p256 = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+sux29ppRQ1Y2vyV
    D9u92XLfwLaegfRLW1IUfaFWiNKhRANCAAS0HI2NJcmht38Erj407N0NAOcaap/z
    rAhPO4chxbKqDjJa4J7uLwdtwtPsv+CypD42/9DgIbuHADw8F8MLCbK5
    -----END PRIVATE KEY-----
    """

  /// A second VAPID key.
  static let otherP256 = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9ebYYK8+RbgpkGR1
    XuZr1VjeOW5L7yIXhPUxoVI4lBWhRANCAAQ72FE4x/jEggKn4wDejtn8DS0X6OsB
    28pUUctWNtERdzr2X0voof1sgsro+bArk57bkhD5qeUDaw6UPUoCr/8b
    -----END PRIVATE KEY-----
    """

  static let rsa = """
    -----BEGIN PRIVATE KEY-----
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCL6p3AESVkGaQr
    D6rrl2JRGyDsVhtihfLYVZXoV/N2KuAdaEQC13T0bNs/FIJkN1pILso/iSxsK8SU
    ib+QhX8aIXYUhtYVPqMfBVlKcXmYP3fmjFBsF8BNNoPfJCogGerY6W36UeSp8/Ml
    nLIRigsOvtyv/idn2H8rMmjGTYcc0nijCdDn/C0D117/vnZo5TXUQ/sZzeYlT/iV
    yrONQ/6/eUvTIWHhDccILJR9JnCdZXg9vV1ygU+KOFWK7HWI+W/FUoJ18CNgkuDS
    ove6dtUwp/roTT3VtST59yd21M0P98dB4GOo3nzbtVt452EKSlZLBQTdQaxN6zzu
    fgNwEpTLAgMBAAECggEACMt5GgMZ5hZkht5nwIJWCEIbyi9JbmJ8FtQeZantoE5m
    owKUT9dqPxj+mRL5dUIzdxkV1nORasU/iJS2CWgSyroyuWyWVWSIDWGhMLg8S/El
    YMUOIxVFHbVhCaw0x6rJY9QceSEfrf0rGgClAsw6ELW3mopvwKvPpo/3HQvvg8Sx
    SnaASLJmVvW3sZBc2DbS+OtRExXj3I01OU8zV7svNbJ/UUKhGX4heUo62ixjVwdx
    8w2uEY1HRTG+cyk4HdBZHfwVS3sJHW28BL/BiVBr75RI0NbolRajrxDfGniuCQ8S
    naGxV3Ubh8vOEtkcor24M0NmiRlJdpDFSmDrBXiY8QKBgQDCTE9kfTFAXuwMBRU5
    VmFbZvUG/NXk+py7BwAh5dtygkWlh7+k1wsm4PZ11C8Al418oVXASZElxju3kW/p
    jpmmD68HQfzelNf/TKsjpc/BDfBape6ASpSU/a+wHPkpt3zebvr9ckW6TB48rz6z
    gs5R8/RkpCsVG0mc5soA9kYMUQKBgQC4WUn9mmIWCl1o9d9fB2l2NJ2YtMmWMME8
    l+5aqUVg1taumw2S5fPmUWzb/HD9R7Kyt33Crh7/0gfDTDBfa0qCEYlNLoXz0zpH
    QNEAijsOyo2XrP6ME9Q7vLvpnI0mhAFAtoocuCNPQnsCKUFNnrQ6t3lpiWtxlD6D
    5qE/ob/0WwKBgCx8Rk0usMEZOphB7asUEPRZbU5tQxfLHWlg3/Hi68ya8RFGNGWs
    arw7E5LEwwIysM1RLw34iggJDBEqdmIWKS2xN5TE0f2wPIgSaLiftSJxa4+FoEa1
    TLGUJ859w7p+bVOMO2Ed8cMGvIGOah+1mkF/RnxobgjGF6OZ37Q6rq0RAoGBAI+5
    lXUyIxzZ8d++Ket15OQyu1fuQ2hkFJQAQ+XNKPkKJpA09M09mP1NKFkOpKzjdE/f
    vR3GEQcUIddClEggZxOnRmu1RNxHJ52bzBbmroqmouPJDR/66bG1QLAuzOFlc3CX
    oHApo+XMiAi0T2SLwioxF2iPqgQANwkxCzCIFBcXAoGASP+9/kkSSL42Ip+yoS6n
    Oc2HlyZY5ztAxg2FtRYvlavXE4JUi/Yj57xKcx86VZIctV+mGteaTGwAxfpBSBwr
    O9M35nwMFXyAwhSGbNih91bJJn9DXjeGclQfK3eZLN5Leyy6s0rdjRyb78t5LkX9
    9pYAvWku7xKJLGB+Kgd324k=
    -----END PRIVATE KEY-----
    """
}
