<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>gateway</name>
    <message>
        <source>"{value}" is not the origin of a page. Write it like https://notes.example.org.</source>
        <translation>“{value}”不是网页来源。请写成 https://notes.example.org 的形式。</translation>
    </message>
    <message>
        <source>Port {port} cannot be used: {reason}. Another program may have it; choose another port in the settings.</source>
        <translation>端口 {port} 无法使用：{reason}。可能已被其他程序占用；请在设置中换一个端口。</translation>
    </message>
    <message>
        <source>Other programs are not served</source>
        <translation>未能为其他程序提供服务</translation>
    </message>
    <message>
        <source>Serving other programs at {address}</source>
        <translation>正在为其他程序提供服务：{address}</translation>
    </message>
    <message>
        <source>Key of the gateway</source>
        <translation>网关密钥</translation>
    </message>
    <message>
        <source>Programs must send it where “Only with a key” is on. It lies in the system's keyring.</source>
        <translation>打开“必须提供密钥”后，其他程序必须提供此密钥。它保存在系统密钥环中。</translation>
    </message>
    <message>
        <source>There is no key, or the system's keyring does not give it. Set the key of the gateway.</source>
        <translation>没有密钥，或系统密钥环未能提供。请设置网关密钥。</translation>
    </message>
    <message>
        <source>Set…</source>
        <translation>设置…</translation>
    </message>
    <message>
        <source>The key that programs must send. Empty: none.</source>
        <translation>其他程序必须提供的密钥。留空则不设。</translation>
    </message>
    <message>
        <source>The key was not kept</source>
        <translation>密钥未能保存</translation>
    </message>
    <message>
        <source>The system has no keyring that takes it, so the key holds until the app ends.</source>
        <translation>系统没有可用的密钥环，密钥仅在程序退出前有效。</translation>
    </message>
</context>
</TS>
