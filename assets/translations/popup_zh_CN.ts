<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>popup</name>
    <message>
        <source>checks holds {value}, but it may only hold {known}.</source>
        <translation>checks 中有 {value}，但只能包含 {known}。</translation>
    </message>
</context>
</TS>
